import type { LetterFacts } from '../letter.ts';
import { type MessageTexts, sentences } from './texts.ts';

const card = ({ card }: LetterFacts) =>
  card ? `u ${card.brand}-kaart wat op ${card.last4} eindig` : 'u kaart';

const standing = ({ count, paid, total, next }: LetterFacts) =>
  count > 1 &&
  `${paid} van ${total} is betaal.${next ? ` Volgende: ${next.amount} op ${next.date}.` : ''}`;

export const af: MessageTexts = {
  letters: {
    receipt: (facts) => ({
      subject: `${facts.amount} aan ${facts.merchant} betaal`,
      paragraphs: sentences(
        `U het ${facts.amount} aan ${facts.merchant} betaal vir bestelling ${facts.order}.`,
        standing(facts),
        facts.next &&
          `Ons verhaal die latere betalings van ${card(facts)} op die datums hieronder.`,
      ),
      link: 'Sien u betalings',
    }),
    charge_soon: (facts) => ({
      subject: `${facts.amount} word op ${facts.date} verhaal`,
      paragraphs: [
        `Op ${facts.date} verhaal ons ${facts.amount} van ${card(facts)}. Dit is betaling ${facts.number} van ${facts.count} vir bestelling ${facts.order} by ${facts.merchant}.`,
        'U hoef niks te doen nie. Om ’n ander kaart te gebruik, maak u betalings oop.',
      ],
      link: 'Sien u betalings',
    }),
    charged: (facts) => ({
      subject: `${facts.amount} aan ${facts.merchant} betaal`,
      paragraphs: sentences(
        `Ons het ${facts.amount} van ${card(facts)} verhaal. Dit was ${facts.numbers ? `betalings ${facts.numbers}` : `betaling ${facts.number}`} van ${facts.count} vir bestelling ${facts.order}.`,
        standing(facts),
      ),
      link: 'Sien u betalings',
    }),
    declined: (facts) => ({
      subject: `U betaling van ${facts.amount} aan ${facts.merchant} het nie deurgegaan nie`,
      paragraphs: sentences(
        `U bank het betaling ${facts.number} van ${facts.count} vir bestelling ${facts.order} geweier: ${facts.amount} van ${card(facts)}. Niks is verhaal nie.`,
        facts.retryOn
          ? `Ons probeer weer op ${facts.retryOn}. U kan ook nou betaal, met hierdie kaart of ’n ander een.`
          : 'Ons probeer nie self weer nie. Betaal dit asseblief nou, met hierdie kaart of ’n ander een.',
        '’n Laat betaling kos u niks ekstra nie.',
      ),
      link: 'Betaal nou',
    }),
    card_expires: (facts) => ({
      subject: `U kaart vir ${facts.merchant} verval voor u laaste betaling`,
      paragraphs: [
        `${facts.card ? `U ${facts.card.brand}-kaart wat op ${facts.card.last4} eindig` : 'U kaart'} verval aan die einde van ${facts.cardExpires}. Betalings vir bestelling ${facts.order} gaan daarna voort.`,
        'Maak u betalings oop en voeg die nuwe kaart by, sodat niks geweier word nie.',
      ],
      link: 'Voeg ’n ander kaart by',
    }),
    card_replaced: (facts) => ({
      subject: `U kaart vir ${facts.merchant} is verander`,
      paragraphs: [
        `Van nou af verhaal ons die betalings vir bestelling ${facts.order} van ${card(facts)}.`,
        'As u dit nie gedoen het nie, laat ons weet vanaf die bladsy met u betalings.',
      ],
      link: 'Sien u betalings',
    }),
    refunded: (facts) => ({
      subject: `${facts.amount} deur ${facts.merchant} terugbetaal`,
      paragraphs: sentences(
        `${facts.merchant} het ${facts.amount} van bestelling ${facts.order} terugbetaal. Die tabel wys wat dit verander het.`,
        'Wat na u kaart teruggaan, verskyn op u staat sodra u bank dit verwerk het.',
        standing(facts),
      ),
      link: 'Sien u betalings',
    }),
    plan_finished: (facts) => ({
      subject: `Alles is betaal: ${facts.total} aan ${facts.merchant}`,
      paragraphs: [
        `U het die laaste betaling vir bestelling ${facts.order} gemaak. Niks meer sal verhaal word nie.`,
      ],
      link: 'Sien u betalings',
    }),
    sign_in_link: (facts) => ({
      subject: `U skakel na die betalings vir ${facts.merchant}`,
      paragraphs: [
        `Gebruik hierdie skakel om te betaal, of om die kaart te verander, vir bestelling ${facts.order}. Dit werk een keer, binne 15 minute.`,
        'As u nie daarvoor gevra het nie, ignoreer hierdie boodskap. Niks verander daarsonder nie.',
      ],
      link: 'Maak u betalings oop',
    }),
  },
  states: {
    paid: 'betaal',
    next: 'volgende',
    planned: 'beplan',
    late: 'laat',
    cancelled: 'gekanselleer',
  },
  payment: (number, count) => (count === 1 ? 'Betaling' : `Betaling ${number} van ${count}`),
  footer: (merchant) => [
    `U kry hierdie boodskap omdat u by ${merchant} gekoop het en deur Tranche betaal.`,
  ],
};
