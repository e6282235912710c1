import type { LetterFacts } from '../letter.ts';
import { type MessageTexts, sentences } from './texts.ts';

const card = ({ card }: LetterFacts) =>
  card ? `ikhadi lakho le-${card.brand} eligcina ngo-${card.last4}` : 'ikhadi lakho';

const standing = ({ count, paid, total, next }: LetterFacts) =>
  count > 1 &&
  `Kukhokhwe u-${paid} ku-${total}.${next ? ` Okulandelayo: ${next.amount} ngo-${next.date}.` : ''}`;

export const zu: MessageTexts = {
  letters: {
    receipt: (facts) => ({
      subject: `U-${facts.amount} ukhokhelwe ku-${facts.merchant}`,
      paragraphs: sentences(
        `Ukhokhe u-${facts.amount} ku-${facts.merchant} nge-oda ${facts.order}.`,
        standing(facts),
        facts.next && `Izinkokhelo ezizayo sizithatha ku-${card(facts)} ngezinsuku ezingezansi.`,
      ),
      link: 'Bona izinkokhelo zakho',
    }),
    charge_soon: (facts) => ({
      subject: `U-${facts.amount} uzokhokhiswa ngo-${facts.date}`,
      paragraphs: [
        `Ngo-${facts.date} sizothatha u-${facts.amount} ku-${card(facts)}. Inkokhelo ${facts.number} kwezingu-${facts.count} ye-oda ${facts.order} yakwa-${facts.merchant}.`,
        'Akudingeki wenze lutho. Ukuze usebenzise elinye ikhadi, vula izinkokhelo zakho.',
      ],
      link: 'Bona izinkokhelo zakho',
    }),
    charged: (facts) => ({
      subject: `U-${facts.amount} ukhokhelwe ku-${facts.merchant}`,
      paragraphs: sentences(
        `Sithathe u-${facts.amount} ku-${card(facts)}. Bekuyinkokhelo ${facts.number} kwezingu-${facts.count} ye-oda ${facts.order}.`,
        standing(facts),
      ),
      link: 'Bona izinkokhelo zakho',
    }),
    declined: (facts) => ({
      subject: `Inkokhelo yakho ka-${facts.amount} ku-${facts.merchant} ayiphumelelanga`,
      paragraphs: sentences(
        `Ibhange lakho linqabe inkokhelo ${facts.number} kwezingu-${facts.count} ye-oda ${facts.order}: u-${facts.amount} ku-${card(facts)}. Akukho mali ethathiwe.`,
        facts.retryOn
          ? `Sizozama futhi ngo-${facts.retryOn}. Ungakhokha nokukhokha manje, ngaleli khadi noma ngelinye.`
          : 'Asizami futhi ngokwethu. Sicela ukhokhe manje, ngaleli khadi noma ngelinye.',
        'Inkokhelo ephuzile ayikubizi lutho olwengeziwe.',
      ),
      link: 'Khokha manje',
    }),
    card_expires: (facts) => ({
      subject: `Ikhadi lakho laku-${facts.merchant} liphelelwa isikhathi ngaphambi kwenkokhelo yokugcina`,
      paragraphs: [
        `${facts.card ? `Ikhadi lakho le-${facts.card.brand} eligcina ngo-${facts.card.last4}` : 'Ikhadi lakho'} liphelelwa isikhathi ekupheleni kuka-${facts.cardExpires}. Izinkokhelo ze-oda ${facts.order} ziyaqhubeka ngemva kwalokho.`,
        'Vula izinkokhelo zakho ufake ikhadi elisha, ukuze kungabi bikho okunqatshwayo.',
      ],
      link: 'Faka elinye ikhadi',
    }),
    card_replaced: (facts) => ({
      subject: `Ikhadi lakho laku-${facts.merchant} lishintshiwe`,
      paragraphs: [
        `Kusukela manje izinkokhelo ze-oda ${facts.order} sizithatha ku-${card(facts)}.`,
        'Uma ungakwenzanga lokhu, sitshele ekhasini lezinkokhelo zakho.',
      ],
      link: 'Bona izinkokhelo zakho',
    }),
    refunded: (facts) => ({
      subject: `U-${facts.amount} ubuyiswe yi-${facts.merchant}`,
      paragraphs: sentences(
        `I-${facts.merchant} ibuyise u-${facts.amount} we-oda ${facts.order}. Ithebula likhombisa okushintshile.`,
        'Okubuyela ekhadini lakho kuvela esitatimendeni sakho uma ibhange lakho seliqedile.',
        standing(facts),
      ),
      link: 'Bona izinkokhelo zakho',
    }),
    plan_finished: (facts) => ({
      subject: `Konke kukhokhiwe: ${facts.total} ku-${facts.merchant}`,
      paragraphs: [
        `Wenze inkokhelo yokugcina ye-oda ${facts.order}. Ayikho enye imali ezothathwa.`,
      ],
      link: 'Bona izinkokhelo zakho',
    }),
    sign_in_link: (facts) => ({
      subject: `Isixhumanisi sakho sezinkokhelo zaku-${facts.merchant}`,
      paragraphs: [
        `Sebenzisa lesi sixhumanisi ukuze ukhokhe, noma ushintshe ikhadi, le-oda ${facts.order}. Sisebenza kanye, phakathi kwemizuzu engu-15.`,
        'Uma ungasicelanga, ungawunaki lo mlayezo. Akukho okushintshayo ngaphandle kwaso.',
      ],
      link: 'Vula izinkokhelo zakho',
    }),
  },
  states: {
    paid: 'kukhokhiwe',
    next: 'okulandelayo',
    planned: 'kuhleliwe',
    late: 'kwephuzile',
    cancelled: 'kukhanseliwe',
  },
  payment: (number, count) => (count === 1 ? 'Inkokhelo' : `Inkokhelo ${number} kwezingu-${count}`),
  footer: (merchant) => [
    `Uthola lo mlayezo ngoba uthenge ku-${merchant} futhi ukhokha nge-Tranche.`,
  ],
};
