import type { Words } from './words.ts';

export const af: Words = {
  page: {
    title_open: 'Betaal',
    title_declined: 'Afgekeur: Betaal',
    title_paying: 'Ons vra u bank',
    title_challenge: 'Bevestig by u bank',
    title_expired: 'Skakel nie meer bruikbaar nie',
    title_approved: 'Betaling goedgekeur',
    title_paid: 'Reeds betaal',
    title_cancelled: 'Betaling gekanselleer',
    title_invalid: 'Kan nie betaal word nie',
    title_unknown: 'Onbekende skakel',

    pay_merchant: 'Betaal {merchant}',
    order_show: 'Wys die bestelling',
    order_hide: 'Versteek die bestelling',
    items_one: '({count} item)',
    items_other: '({count} items)',
    items_all: 'Wys al {count} items',
    item_each: '{count} teen {amount}',
    other_charges: 'Ander koste',
    discounts: 'Afslag',
    total: 'Totaal',
    order: 'Bestelling',

    how_to_pay: 'Hoe wil u betaal?',
    how_you_pay: 'Hoe u betaal',
    payments_one: '{count} betaling',
    payments_other: '{count} betalings',
    price_today: '{amount} vandag',
    price_monthly: '{amount} per\u00a0maand',
    price_then: 'dan {amount} per\u00a0maand',
    today: 'Vandag',
    payments_all: 'Wys al {count} betalings',
    payments_sum: 'Die betalings is saam {amount}.',
    no_fees: 'Geen rente nie. Geen fooie nie.',

    card_details: 'Kaartbesonderhede',
    card_marks: 'Aanvaar: {brands}',
    card_loading: 'Die kaartvorm laai.',
    card_failed: 'Die kaartvorm het nie gelaai nie.',
    card_failed_next:
      'Niks is gehef nie. Kyk of u verbinding werk en of iets in u blaaier dit blokkeer.',
    card_reload: 'Laai dit weer',
    card_privacy: 'U kaartbesonderhede gaan reguit na die kaartverwerker, nie na {merchant} nie.',
    card_silent: 'Die kaartvorm antwoord nie. Kyk of u verbinding werk en probeer weer.',

    consent:
      'Deur te betaal stem u in dat {charges} ook van hierdie kaart verhaal word, sonder om u weer te vra.',
    consent_charge: '{amount} op {date}',
    consent_charges: '{first} en {last}',
    consent_many:
      '{count} maandelikse betalings van {amount} elk, op die datums hierbo, van {first} tot {last},',

    pay_now: 'Betaal {amount} nou',
    busy_checking: 'Ons kontroleer die kaart…',
    busy_paying: 'Ons vra u bank…',
    busy_cancelling: 'Ons kanselleer…',
    busy_lost: 'Ons vind uit wat gebeur het…',
    busy_leaving: 'Ons neem u na u bank…',
    next_steps: 'Hierna vra u bank dalk dat u bevestig. Dan keer u terug na {merchant}.',
    next_busy: 'Hou hierdie bladsy oop totdat dit klaar is.',
    next_slow: 'Dit neem langer as gewoonlik. Hou hierdie bladsy oop: u bank kan nog antwoord.',
    cancel: 'Kanselleer en keer terug na {merchant}',
    no_script:
      'Betaling benodig JavaScript, sodat u kaartbesonderhede reguit na die kaartverwerker gaan. Skakel dit aan en laai hierdie bladsy weer.',

    nothing_charged: 'Niks is gehef nie.',
    lost: 'Die verbinding is verbreek.',
    lost_next:
      'Ons vind uit of u betaling deurgegaan het. Hou hierdie bladsy oop en moenie elders weer betaal nie.',
    unfinished: 'U betaling het nie deurgegaan nie.',
    unfinished_next: 'Niks is gehef nie. U kan weer probeer.',

    declined: 'U bank het hierdie kaart afgekeur.',
    declined_funds: 'U bank het hierdie kaart afgekeur: nie genoeg geld nie.',
    declined_limit: 'U bank het hierdie kaart afgekeur: dit het vir eers sy limiet bereik.',
    declined_expired: 'U bank het hierdie kaart afgekeur: dit het verval.',
    declined_code: 'U bank het hierdie kaart afgekeur: die sekuriteitskode is verkeerd.',
    declined_number: 'U bank het hierdie kaart afgekeur: die nommer is verkeerd.',
    declined_processing: 'U bank kon die betaling nou net nie hanteer nie.',
    declined_unconfirmed: 'U bank kon nie bevestig dat dit u was nie.',
    declined_unasked: 'U bank wil hê dat u die betaling bevestig, en dit het nie gebeur nie.',
    advice_other: 'Niks is gehef nie. Gebruik ’n ander kaart.',
    advice_again: 'Niks is gehef nie. Probeer weer of gebruik ’n ander kaart.',
    advice_later: 'Niks is gehef nie. Probeer later weer of gebruik ’n ander kaart.',
    advice_moment: 'Niks is gehef nie. Probeer oor ’n oomblik weer of gebruik ’n ander kaart.',
    advice_expiry: 'Niks is gehef nie. Kontroleer die vervaldatum of gebruik ’n ander kaart.',
    advice_code: 'Niks is gehef nie. Kontroleer die kode of gebruik ’n ander kaart.',
    advice_number: 'Niks is gehef nie. Kontroleer die nommer of gebruik ’n ander kaart.',

    waiting: '’n Betaling vir hierdie bestelling is aan die gang. Hier sien u hoe dit eindig.',
    waiting_lost:
      'Die verbinding is verbreek. Ons vind uit of u betaling deurgegaan het. Moenie elders weer betaal nie.',
    waiting_keep: 'Hou hierdie bladsy oop.',
    waiting_slow: 'Hou hierdie bladsy oop: dit neem langer as gewoonlik.',
    waiting_label: 'Ons wag vir u bank',

    bank: 'U bank wil van u hoor',
    bank_next:
      'Dit vra dat u die betaling van {amount} bevestig. Niks word gehef voordat u dit doen nie.',
    bank_leaving: 'U word na u bank geneem om die betaling te bevestig.',
    bank_continue: 'Gaan voort by u bank',
    bank_other_card: 'Gebruik ’n ander kaart',

    approved: 'Betaling goedgekeur',
    approved_taken: '{amount} vandag; volgende\u00a0betaling\u00a0{date}.',
    approved_next: 'Dankie. U word teruggeneem na {merchant}.',
    paid: 'Hierdie bestelling is reeds betaal',
    paid_next: 'U betaling is goedgekeur. Hier is niks meer te doen nie.',
    cancelled: 'Betaling gekanselleer',
    cancelled_returning: 'Niks is gehef nie. U word teruggeneem na {merchant}.',
    cancelled_next: 'Niks is gehef nie. Om tog te koop, begin weer by {merchant}.',
    expired: 'Hierdie betaalskakel kan nie meer gebruik word nie',
    expired_next:
      'Dit werk vir ’n beperkte tyd en ’n beperkte aantal pogings. Niks is gehef nie. Om tog te koop, gaan terug na {merchant} en begin weer.',
    invalid: 'Hierdie bestelling kan nie betaal word nie',
    invalid_next:
      'Iets in wat {merchant} daaroor aan ons gestuur het, is verkeerd. Niks is gehef nie. Gaan terug na {merchant} en begin weer.',
    unknown: 'Hierdie skakel lei nêrens heen nie',
    unknown_next:
      'Dit is dalk onvolledig of verkeerd getik. Niks is daardeur gehef nie. Gaan terug na die winkel en begin die betaling weer.',
    return: 'Keer terug na {merchant}',

    date: '{day} {month} {year}',
    months:
      'Januarie,Februarie,Maart,April,Mei,Junie,Julie,Augustus,September,Oktober,November,Desember',

    language: 'Taal',
    terms: 'Voorwaardes',
    privacy: 'Privaatheid',
    contact: 'Hulp',
  },
};
