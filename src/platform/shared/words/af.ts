import type { Words } from './words.ts';

export const af: Words = {
  page: {
    title_open: 'Betaal',
    title_declined: 'Afgekeur: Betaal',
    title_paying: 'Ons vra u bank',
    title_challenge: 'Bevestig by u bank',
    title_expired: 'Skakel nie meer bruikbaar nie',
    title_approved: 'Betaling goedgekeur',
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
    card_logos: 'Aanvaar: {brands}',
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
    consent_late: '{amount} wat laat is',
    consent_monthly: '{count} maandelikse betalings van {amount} elk, van {first} tot {last},',
    consent_keep: 'Verhaal ook {charges} van hierdie kaart, sonder om my weer te vra.',
    consent_card:
      'Deur hierdie kaart te stoor stem u in dat {charges} daarvan verhaal word, sonder om u weer te vra.',

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
    limited: 'Daar was te veel pogings. Probeer later weer.',
    outdated: 'Hierdie bladsy was verouderd. Kyk weer daarna.',
    payments_paused:
      'Betalings is tans onderbreek. Niks is gehef nie. Probeer asseblief later weer.',
    lost: 'Die verbinding is verbreek.',
    lost_next:
      'Ons vind uit of u betaling deurgegaan het. Hou hierdie bladsy oop en moenie elders weer betaal nie.',
    lost_card_next: 'Ons vind uit of u kaart verander is. Hou hierdie bladsy oop.',
    unfinished: 'U betaling het nie deurgegaan nie.',
    unfinished_next: 'Niks is gehef nie. U kan weer probeer.',
    card_unchanged: 'U kaart is nie verander nie.',

    declined: 'U bank het hierdie kaart afgekeur.',
    declined_funds: 'U bank het hierdie kaart afgekeur: nie genoeg geld nie.',
    declined_limit: 'U bank het hierdie kaart afgekeur: dit het vir eers sy limiet bereik.',
    declined_expired: 'U bank het hierdie kaart afgekeur: dit het verval.',
    declined_code: 'U bank het hierdie kaart afgekeur: die sekuriteitskode is verkeerd.',
    declined_number: 'U bank het hierdie kaart afgekeur: die nommer is verkeerd.',
    declined_processing: 'U bank kon die betaling nou net nie hanteer nie.',
    declined_unconfirmed: 'U bank kon nie bevestig dat dit u was nie.',
    declined_unasked: 'U bank wil hê dat u die betaling bevestig, en dit het nie gebeur nie.',
    card_unhandled: 'U bank kon die kaart nou net nie hanteer nie.',
    card_unasked: 'U bank wil hê dat u die kaart bevestig, en dit het nie gebeur nie.',
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

    plan: 'U betalings',
    plan_standing: '{paid} van {total} betaal',
    plan_finished: 'Alles is betaal',
    plan_refunded: 'Hierdie bestelling is terugbetaal',
    plan_next: 'Volgende: {amount} op {date}.',
    plan_nothing: 'Niks meer sal gehef word nie.',
    plan_paused: '’n Terugbetaling is aan die gang. Niks word gehef voordat dit klaar is nie.',
    plan_stopped:
      'Betalings is tans onderbreek. Niks word gehef voordat dit weer voortgaan nie. Kyk asseblief later weer.',
    plan_disputed:
      'U het ’n betaling van hierdie bestelling by u bank betwis. Niks word gehef voordat die bank besluit het nie.',
    plan_dispute_lost:
      'U bank het ’n betaling van hierdie bestelling aan u teruggegee. Niks word vir eers gehef nie; vra die winkel wat nou gebeur.',
    plan_late_one: '{amount} is laat.',
    plan_late_other: '{count} betalings is laat: altesaam {amount}.',
    plan_late_free: 'Dit kos u niks ekstra nie.',
    plan_late_retry: 'Ons probeer weer op {date}, of u betaal dit nou.',
    plan_late_stopped: 'Ons probeer nie self weer nie. Betaal dit asseblief nou.',
    plan_paid: 'Betaal',
    plan_paid_on: 'Betaal op {date}',
    plan_is_next: 'Volgende',
    plan_planned: 'Beplan',
    plan_late: 'Laat',
    plan_cancelled: 'Deur ’n terugbetaling gekanselleer',
    plan_reduced: '{amount} minder ná ’n terugbetaling',
    plan_returned: '{amount} terugbetaal',
    plan_row_disputed: 'Word by die bank betwis',
    plan_row_returned: 'Deur die bank teruggegee',
    plan_receipt: 'Kwitansie',
    plan_receipt_of: 'Kwitansie vir betaling {number}',
    plan_card_next: 'Kaart vir die komende betalings',
    plan_card_paid: 'Betaal met',
    plan_card: '{brand} wat op {last4} eindig',
    plan_refunds: 'Terugbetalings',
    plan_refunds_before: 'Vroeëre terugbetalings wat nie gelys is nie: {count}.',
    refund_requested: 'Aangevra',
    refund_pending: 'Aan die gang',
    refund_complete: 'Terugbetaal',
    refund_failed: 'Nie uitgevoer nie',
    plan_calendar: 'Voeg die datums by u kalender',
    plan_no_script:
      'Om vroeër te betaal, die kaart te verander of ’n probleem aan te meld, skakel JavaScript aan en laai hierdie bladsy weer.',

    manage: 'Bestuur u betalings',
    manage_hint: 'Betaal vroeër, verander die kaart, of sê vir ons dat iets verkeerd is.',
    no_links:
      'Kontak {merchant} om ’n betaling te maak, die kaart te verander of ’n probleem aan te meld.',
    prove: 'Wys eers dat dit u is',
    prove_why:
      'Enigeen met hierdie bladsy se adres kan dit sien. Om te betaal of die kaart te verander, maak dit oop met ’n skakel wat ons na die e-posadres van u bestelling stuur.',
    prove_email: 'E-posadres',
    prove_send: 'Stuur vir my ’n skakel',
    prove_sending: 'Ons stuur…',
    prove_sent: 'Kyk in u pos.',
    prove_sent_next:
      'As dit die adres van u bestelling is, is ’n skakel op pad. Dit werk een keer, binne 15 minute.',
    prove_wrong: 'Tik ’n e-posadres, soos naam@example.com.',
    prove_limited: 'Dit is te dikwels. Wag ’n kwartier en probeer weer.',
    prove_opening: 'Ons maak u betalings oop…',
    prove_ended: 'Hierdie skakel is reeds gebruik of het verval.',
    prove_ended_next: 'Vra ’n nuwe een. Niks het verander nie.',
    no_connection: 'Die verbinding is verbreek. Gaan dit na en probeer weer.',
    signed_in: 'U is aangemeld tot {time}.',
    signed_out: 'U is afgemeld. Vra ’n nuwe skakel om voort te gaan.',
    sign_out: 'Meld af',

    manage_pay: 'Betaal {amount}',
    manage_dates_one: 'Die betaling van {date}.',
    manage_dates_other: '{count} betalings, van {first} tot {last}.',
    manage_next: 'Betaal die volgende een vroeër',
    manage_rest: 'Betaal die res af',
    manage_card: 'Verander die kaart',
    manage_card_note: 'U bank vra dalk dat u die kaart bevestig. Niks word nou gehef nie.',
    manage_save: 'Gebruik hierdie kaart',
    manage_which: 'Watter kaart?',
    manage_other: '’n Ander kaart',
    manage_steps: 'Hierna vra u bank dalk dat u bevestig.',
    manage_paid: '{amount} is betaal. Dankie.',
    manage_replaced: 'U kaart is verander. Die komende betalings word verhaal van {card}.',
    manage_bank_card: 'Dit vra dat u die kaart bevestig. Niks word gehef nie.',
    refused_charging: 'Hierdie betaling word op hierdie oomblik verhaal. Kyk oor ’n minuut weer.',
    refused_refund:
      '’n Terugbetaling is aan die gang. U kan betaal wanneer dit klaar is. Niks is gehef nie.',
    refused_disputed:
      'U het ’n betaling by u bank betwis. U kan betaal wanneer daaroor besluit is. Niks is gehef nie.',
    refused_card:
      'U bank laat nie nou hierdie kaart toe nie. Niks is gehef nie. Gebruik ’n ander kaart.',
    refused_changed: 'U plan het intussen verander. Niks is gehef nie. Kyk weer daarna.',

    back: 'Terug',
    report: 'Iets is verkeerd',
    report_label: 'Wat is verkeerd?',
    report_hint: 'Moet asseblief nie kaartnommers hier skryf nie.',
    report_send: 'Stuur',
    report_sent: 'Dankie. Ons het u boodskap.',
    report_empty: 'Skryf eers wat verkeerd is.',

    date: '{day} {month} {year}',
    months:
      'Januarie,Februarie,Maart,April,Mei,Junie,Julie,Augustus,September,Oktober,November,Desember',

    language: 'Taal',
    terms: 'Voorwaardes',
    privacy: 'Privaatheid',
    contact: 'Hulp',
  },
  receipt: {
    heading: 'Kwitansie',
    title: 'Kwitansie: {amount} aan {merchant}',
    order: 'Bestelling',
    payment: 'Betaling',
    of: '{number} van {count}',
    date: 'Datum',
    card: 'Kaart',
    refunded: 'Sedertdien terugbetaal',
    reference: 'Verwysing',
  },
  calendar: {
    summary: '{amount} aan {merchant}',
    description: 'Betaling {number} van {count} vir bestelling {order}.',
  },
  letter: {
    card: 'u {brand}-kaart wat op {last4} eindig',
    card_unknown: 'u kaart',
    standing: '{paid} van {total} is betaal.',
    standing_next: 'Volgende: {next_amount} op {next_date}.',
    see: 'Sien u betalings',

    paid_subject: '{amount} aan {merchant} betaal',
    receipt: 'U het {amount} aan {merchant} betaal vir bestelling {order}.',
    receipt_later: 'Ons verhaal die latere betalings van {card} op die datums hieronder.',
    charged:
      'Ons het {amount} van {card} verhaal. Dit was betaling {number} van {count} vir bestelling {order}.',
    charged_several:
      'Ons het {amount} van {card} verhaal. Dit was betalings {numbers} van {count} vir bestelling {order}.',

    soon_subject: '{amount} word op {date} verhaal',
    soon: 'Op {date} verhaal ons {amount} van {card}. Dit is betaling {number} van {count} vir bestelling {order} by {merchant}.',
    soon_next: 'U hoef niks te doen nie. Om ’n ander kaart te gebruik, maak u betalings oop.',

    declined_subject: 'U betaling van {amount} aan {merchant} het nie deurgegaan nie',
    declined:
      'U bank het betaling {number} van {count} vir bestelling {order} geweier: {amount} van {card}. Niks is verhaal nie.',
    declined_retry:
      'Ons probeer weer op {retry_on}. U kan ook nou betaal, met hierdie kaart of ’n ander een.',
    declined_stopped:
      'Ons probeer nie self weer nie. Betaal dit asseblief nou, met hierdie kaart of ’n ander een.',
    declined_free: '’n Laat betaling kos u niks ekstra nie.',
    declined_link: 'Betaal nou',

    expires_subject: 'U kaart vir {merchant} verval voor u laaste betaling',
    expires:
      '{card} verval aan die einde van {expires}. Betalings vir bestelling {order} gaan daarna voort.',
    expires_next: 'Maak u betalings oop en voeg die nuwe kaart by, sodat niks geweier word nie.',
    expires_link: 'Voeg ’n ander kaart by',

    replaced_subject: 'U kaart vir {merchant} is verander',
    replaced: 'Van nou af verhaal ons die betalings vir bestelling {order} van {card}.',
    replaced_next: 'As u dit nie gedoen het nie, laat ons weet vanaf die bladsy met u betalings.',

    refunded_subject: '{amount} deur {merchant} terugbetaal',
    refunded:
      '{merchant} het {amount} van bestelling {order} terugbetaal. Die tabel wys wat dit verander het.',
    refunded_next: 'Wat na u kaart teruggaan, verskyn op u staat sodra u bank dit verwerk het.',

    finished_subject: 'Alles is betaal: {total} aan {merchant}',
    finished:
      'U het die laaste betaling vir bestelling {order} gemaak. Niks meer sal verhaal word nie.',

    link_subject: 'U skakel na die betalings vir {merchant}',
    link: 'Gebruik hierdie skakel om te betaal, of om die kaart te verander, vir bestelling {order}. Dit werk een keer, binne 15 minute.',
    link_next:
      'As u nie daarvoor gevra het nie, ignoreer hierdie boodskap. Niks verander daarsonder nie.',
    link_open: 'Maak u betalings oop',

    payment: 'Betaling',
    payment_of: 'Betaling {number} van {count}',
    state_paid: 'betaal',
    state_next: 'volgende',
    state_planned: 'beplan',
    state_late: 'laat',
    state_cancelled: 'gekanselleer',
    footer: 'U kry hierdie boodskap omdat u by {merchant} gekoop het en deur Tranche betaal.',
  },
};
