import type { LetterFacts } from '../letter.ts';
import { type MessageTexts, sentences } from './texts.ts';

const card = ({ card }: LetterFacts) =>
  card ? `ikhadi lakho le\u2011${card.brand} eligcina ngo\u2011${card.last4}` : 'ikhadi lakho';

const standing = ({ count, paid, total, next }: LetterFacts) =>
  count > 1 &&
  `Kukhokhwe u\u2011${paid} ku\u2011${total}.${next ? ` Okulandelayo: ${next.amount} ngo\u2011${next.date}.` : ''}`;

export const zu: MessageTexts = {
  letters: {
    receipt: (facts) => ({
      subject: `U\u2011${facts.amount} ukhokhelwe ku\u2011${facts.merchant}`,
      paragraphs: sentences(
        `Ukhokhe u\u2011${facts.amount} ku\u2011${facts.merchant} nge-oda ${facts.order}.`,
        standing(facts),
        facts.next &&
          `Izinkokhelo ezizayo sizithatha ku\u2011${card(facts)} ngezinsuku ezingezansi.`,
      ),
      link: 'Bona izinkokhelo zakho',
    }),
    charge_soon: (facts) => ({
      subject: `U\u2011${facts.amount} uzokhokhiswa ngo\u2011${facts.date}`,
      paragraphs: [
        `Ngo\u2011${facts.date} sizothatha u\u2011${facts.amount} ku\u2011${card(facts)}. Inkokhelo ${facts.number} kwezingu\u2011${facts.count} ye-oda ${facts.order} yakwa\u2011${facts.merchant}.`,
        'Akudingeki wenze lutho. Ukuze usebenzise elinye ikhadi, vula izinkokhelo zakho.',
      ],
      link: 'Bona izinkokhelo zakho',
    }),
    charged: (facts) => ({
      subject: `U\u2011${facts.amount} ukhokhelwe ku\u2011${facts.merchant}`,
      paragraphs: sentences(
        `Sithathe u\u2011${facts.amount} ku\u2011${card(facts)}. ${facts.numbers ? `Bekuyizinkokhelo ${facts.numbers}` : `Bekuyinkokhelo ${facts.number}`} kwezingu\u2011${facts.count} ye-oda ${facts.order}.`,
        standing(facts),
      ),
      link: 'Bona izinkokhelo zakho',
    }),
    declined: (facts) => ({
      subject: `Inkokhelo yakho ka\u2011${facts.amount} ku\u2011${facts.merchant} ayiphumelelanga`,
      paragraphs: sentences(
        `Ibhange lakho linqabe inkokhelo ${facts.number} kwezingu\u2011${facts.count} ye-oda ${facts.order}: u\u2011${facts.amount} ku\u2011${card(facts)}. Akukho mali ethathiwe.`,
        facts.retryOn
          ? `Sizozama futhi ngo\u2011${facts.retryOn}. Ungakhokha nokukhokha manje, ngaleli khadi noma ngelinye.`
          : 'Asizami futhi ngokwethu. Sicela ukhokhe manje, ngaleli khadi noma ngelinye.',
        'Inkokhelo ephuzile ayikubizi lutho olwengeziwe.',
      ),
      link: 'Khokha manje',
    }),
    card_expires: (facts) => ({
      subject: `Ikhadi lakho laku\u2011${facts.merchant} liphelelwa isikhathi ngaphambi kwenkokhelo yokugcina`,
      paragraphs: [
        `${facts.card ? `Ikhadi lakho le\u2011${facts.card.brand} eligcina ngo\u2011${facts.card.last4}` : 'Ikhadi lakho'} liphelelwa isikhathi ekupheleni kuka\u2011${facts.cardExpires}. Izinkokhelo ze-oda ${facts.order} ziyaqhubeka ngemva kwalokho.`,
        'Vula izinkokhelo zakho ufake ikhadi elisha, ukuze kungabi bikho okunqatshwayo.',
      ],
      link: 'Faka elinye ikhadi',
    }),
    card_replaced: (facts) => ({
      subject: `Ikhadi lakho laku\u2011${facts.merchant} lishintshiwe`,
      paragraphs: [
        `Kusukela manje izinkokhelo ze-oda ${facts.order} sizithatha ku\u2011${card(facts)}.`,
        'Uma ungakwenzanga lokhu, sitshele ekhasini lezinkokhelo zakho.',
      ],
      link: 'Bona izinkokhelo zakho',
    }),
    refunded: (facts) => ({
      subject: `U\u2011${facts.amount} ubuyiswe yi\u2011${facts.merchant}`,
      paragraphs: sentences(
        `I\u2011${facts.merchant} ibuyise u\u2011${facts.amount} we-oda ${facts.order}. Ithebula likhombisa okushintshile.`,
        'Okubuyela ekhadini lakho kuvela esitatimendeni sakho uma ibhange lakho seliqedile.',
        standing(facts),
      ),
      link: 'Bona izinkokhelo zakho',
    }),
    plan_finished: (facts) => ({
      subject: `Konke kukhokhiwe: ${facts.total} ku\u2011${facts.merchant}`,
      paragraphs: [
        `Wenze inkokhelo yokugcina ye-oda ${facts.order}. Ayikho enye imali ezothathwa.`,
      ],
      link: 'Bona izinkokhelo zakho',
    }),
    sign_in_link: (facts) => ({
      subject: `Isixhumanisi sakho sezinkokhelo zaku\u2011${facts.merchant}`,
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
  payment: (number, count) =>
    count === 1 ? 'Inkokhelo' : `Inkokhelo ${number} kwezingu\u2011${count}`,
  footer: (merchant) => [
    `Uthola lo mlayezo ngoba uthenge ku\u2011${merchant} futhi ukhokha nge-Tranche.`,
  ],
};
