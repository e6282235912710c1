import type { Words } from './words.ts';

// A prefix and its word stay on one line: \u2011 is a hyphen at which no line breaks.
export const zu: Words = {
  page: {
    title_open: 'Khokha',
    title_declined: 'Kwenqatshiwe: Khokha',
    title_paying: 'Sibuza ibhange lakho',
    title_challenge: 'Qinisekisa ebhange lakho',
    title_expired: 'Isixhumanisi asisasebenzi',
    title_approved: 'Inkokhelo ivunyiwe',
    title_cancelled: 'Inkokhelo ikhanseliwe',
    title_invalid: 'Ayikwazi ukukhokhelwa',
    title_unknown: 'Isixhumanisi asaziwa',

    pay_merchant: 'Khokhela {merchant}',
    order_show: 'Bonisa i-oda',
    order_hide: 'Fihla i-oda',
    items_one: '(into e-{count})',
    items_other: '(izinto ezi-{count})',
    items_all: 'Bonisa zonke izinto ezi-{count}',
    item_each: '{count} nge\u2011{amount} ngayinye',
    other_charges: 'Ezinye izindleko',
    discounts: 'Izaphulelo',
    total: 'Isamba',
    order: 'I-oda',

    how_to_pay: 'Ufuna ukukhokha kanjani?',
    how_you_pay: 'Indlela okhokha ngayo',
    payments_one: 'Inkokhelo e-{count}',
    payments_other: 'Izinkokhelo ezi-{count}',
    price_today: '{amount} namuhla',
    price_monthly: '{amount} ngenyanga',
    price_then: 'bese kuba {amount} ngenyanga',
    today: 'Namuhla',
    payments_all: 'Bonisa zonke izinkokhelo ezi-{count}',
    payments_sum: 'Izinkokhelo zihlangene zenza {amount}.',
    no_fees: 'Ayikho inzalo. Ayikho imali eyengeziwe.',

    card_details: 'Imininingwane yekhadi',
    card_later: 'Uzofaka ikhadi lakho esinyathelweni esilandelayo.',
    card_logos: 'Amukelwayo: {brands}',
    card_loading: 'Ifomu lekhadi liyalayisha.',
    card_failed: 'Ifomu lekhadi alilayishanga.',
    card_failed_next:
      'Akukho okukhokhisiwe. Hlola ukuxhumana kwakho, nokuthi akukho okulivimbayo esipheqululini sakho.',
    card_reload: 'Lilayishe futhi',
    card_privacy:
      'Imininingwane yekhadi lakho iya ngqo kumcubunguli wamakhadi, ayiyi ku\u2011{merchant}.',
    card_silent: 'Ifomu lekhadi aliphenduli. Hlola ukuxhumana kwakho bese uzama futhi.',

    consent:
      'Ngokukhokha uyavuma ukuthi leli khadi liphinde likhokhiswe {charges}, ngaphandle kokukubuza futhi.',
    consent_charge: '{amount} ngo\u2011{date}',
    consent_charges: '{first} kanye no\u2011{last}',
    consent_many:
      'izinkokhelo zanyanga zonke ezi-{count} ze\u2011{amount} ngayinye, ngezinsuku ezibhalwe ngenhla, kusukela ngo\u2011{first} kuya ku\u2011{last}',
    consent_late: '{amount} esemuva kwesikhathi',
    consent_monthly:
      'izinkokhelo zanyanga zonke ezi-{count} ze\u2011{amount} ngayinye, kusukela ngo\u2011{first} kuya ku\u2011{last}',
    consent_keep: 'Khokhisa leli khadi {charges} futhi, ngaphandle kokungibuza futhi.',
    consent_card:
      'Ngokugcina leli khadi uyavuma ukuthi likhokhiswe {charges}, ngaphandle kokukubuza futhi.',

    pay_now: 'Khokha {amount} manje',
    go_on: 'Qhubekela ekhadini lakho',
    choose_again: 'Shintsha',
    busy_checking: 'Sihlola ikhadi…',
    busy_paying: 'Sibuza ibhange lakho…',
    busy_cancelling: 'Siyakhansela…',
    busy_lost: 'Sithola ukuthi kwenzekeni…',
    busy_leaving: 'Sikuyisa ebhange lakho…',
    next_steps:
      'Okulandelayo, ibhange lakho lingacela ukuthi uqinisekise. Bese ubuyela ku\u2011{merchant}.',
    next_busy: 'Gcina leli khasi livuliwe kuze kuphele.',
    next_slow:
      'Lokhu kuthatha isikhathi eside kunokujwayelekile. Gcina leli khasi livuliwe: ibhange lakho lisengaphendula.',
    cancel: 'Khansela ubuyele ku\u2011{merchant}',
    no_script:
      'Ukukhokha kudinga i-JavaScript, ukuze imininingwane yekhadi lakho iye ngqo kumcubunguli wamakhadi. Yivule bese ulayisha leli khasi futhi.',

    nothing_charged: 'Akukho okukhokhisiwe.',
    limited: 'Kube nemizamo eminingi kakhulu. Zama futhi kamuva.',
    outdated: 'Leli khasi belingasekho esikhathini. Libheke futhi.',
    payments_paused:
      'Izinkokhelo zimisiwe okwamanje. Akukho okukhokhisiwe. Sicela uzame futhi kamuva.',
    lost: 'Ukuxhumana kulahlekile.',
    lost_next:
      'Sithola ukuthi inkokhelo yakho iphumelele yini. Gcina leli khasi livuliwe, futhi ungakhokhi futhi kwenye indawo.',
    lost_card_next: 'Sithola ukuthi ikhadi lakho lishintshiwe yini. Gcina leli khasi livuliwe.',
    unfinished: 'Inkokhelo yakho ayiphumelelanga.',
    unfinished_next: 'Akukho okukhokhisiwe. Ungazama futhi.',
    card_unchanged: 'Ikhadi lakho alishintshwanga.',

    declined: 'Ibhange lakho linqabe leli khadi.',
    declined_funds: 'Ibhange lakho linqabe leli khadi: ayikho imali eyanele.',
    declined_limit: 'Ibhange lakho linqabe leli khadi: selifinyelele umkhawulo walo okwamanje.',
    declined_expired: 'Ibhange lakho linqabe leli khadi: seliphelelwe yisikhathi.',
    declined_code: 'Ibhange lakho linqabe leli khadi: ikhodi yokuphepha ayilungile.',
    declined_number: 'Ibhange lakho linqabe leli khadi: inombolo ayilungile.',
    declined_processing: 'Ibhange lakho alikwazanga ukuphatha inkokhelo okwamanje.',
    declined_unconfirmed: 'Ibhange lakho alikwazanga ukuqinisekisa ukuthi bekunguwe.',
    declined_unasked: 'Ibhange lakho lifuna uqinisekise inkokhelo, futhi lokho akwenzekanga.',
    card_unhandled: 'Ibhange lakho alikwazanga ukuphatha ikhadi okwamanje.',
    card_unasked: 'Ibhange lakho lifuna uqinisekise ikhadi, futhi lokho akwenzekanga.',
    advice_other: 'Akukho okukhokhisiwe. Sebenzisa elinye ikhadi.',
    advice_again: 'Akukho okukhokhisiwe. Zama futhi noma usebenzise elinye ikhadi.',
    advice_later: 'Akukho okukhokhisiwe. Zama futhi kamuva noma usebenzise elinye ikhadi.',
    advice_moment: 'Akukho okukhokhisiwe. Zama futhi maduze noma usebenzise elinye ikhadi.',
    advice_expiry:
      'Akukho okukhokhisiwe. Hlola usuku lokuphelelwa yisikhathi noma usebenzise elinye ikhadi.',
    advice_code: 'Akukho okukhokhisiwe. Hlola ikhodi noma usebenzise elinye ikhadi.',
    advice_number: 'Akukho okukhokhisiwe. Hlola inombolo noma usebenzise elinye ikhadi.',

    waiting: 'Inkokhelo yale oda iyaqhubeka. Uzobona lapha ukuthi iphela kanjani.',
    waiting_lost:
      'Ukuxhumana kulahlekile. Sithola ukuthi inkokhelo yakho iphumelele yini. Ungakhokhi futhi kwenye indawo.',
    waiting_keep: 'Gcina leli khasi livuliwe.',
    waiting_slow: 'Gcina leli khasi livuliwe: kuthatha isikhathi eside kunokujwayelekile.',
    waiting_label: 'Silinde ibhange lakho',

    bank: 'Ibhange lakho lifuna ukuzwa kuwe',
    bank_next:
      'Licela ukuthi uqinisekise inkokhelo ye\u2011{amount}. Akukho okukhokhiswayo uze ukwenze lokho.',
    bank_leaving: 'Uyiswa ebhange lakho ukuze uqinisekise inkokhelo.',
    bank_continue: 'Qhubeka ebhange lakho',
    bank_other_card: 'Sebenzisa elinye ikhadi',

    approved: 'Inkokhelo ivunyiwe',
    approved_taken: '{amount} namuhla; inkokhelo elandelayo {date}.',
    approved_next: 'Siyabonga. Ubuyiselwa ku\u2011{merchant}.',
    cancelled: 'Inkokhelo ikhanseliwe',
    cancelled_returning: 'Akukho okukhokhisiwe. Ubuyiselwa ku\u2011{merchant}.',
    cancelled_next: 'Akukho okukhokhisiwe. Uma usafuna ukuthenga, qala futhi ku\u2011{merchant}.',
    expired: 'Lesi sixhumanisi sokukhokha asisasebenzi',
    expired_next:
      'Sisebenza isikhathi esilinganiselwe nemizamo elinganiselwe. Akukho okukhokhisiwe. Uma usafuna ukuthenga, buyela ku\u2011{merchant} uqale futhi.',
    invalid: 'Le oda ayikwazi ukukhokhelwa',
    invalid_next:
      'Kukhona okungalungile kulokho u\u2011{merchant} asithumelele khona ngayo. Akukho okukhokhisiwe. Buyela ku\u2011{merchant} uqale futhi.',
    unknown: 'Lesi sixhumanisi asiyi ndawo',
    unknown_next:
      'Kungenzeka asiphelele noma sibhalwe kabi. Akukho okukhokhisiwe ngaso. Buyela esitolo uqale inkokhelo futhi.',
    return: 'Buyela ku\u2011{merchant}',

    plan: 'Izinkokhelo zakho',
    plan_standing: 'Kukhokhwe {paid} ku\u2011{total}',
    plan_finished: 'Konke kukhokhiwe',
    plan_refunded: 'Le oda ibuyiselwe imali',
    plan_next: 'Okulandelayo: {amount} ngo\u2011{date}.',
    plan_nothing: 'Akukho okunye okuzokhokhiswa.',
    plan_paused: 'Ukubuyiselwa kwemali kuyaqhubeka. Akukho okukhokhiswayo kuze kuphele.',
    plan_stopped:
      'Izinkokhelo zimisiwe okwamanje. Akukho okukhokhiswayo zize ziqhubeke. Sicela ubheke futhi kamuva.',
    plan_disputed:
      'Uphikise inkokhelo yale oda ebhange lakho. Akukho okukhokhiswayo kuze kube ibhange selinqumile.',
    plan_dispute_lost:
      'Ibhange lakho likubuyisele inkokhelo yale oda. Okwamanje akukho okukhokhiswayo; buza isitolo ukuthi kwenzekani manje.',
    plan_late_one: '{amount} isemuva kwesikhathi.',
    plan_late_other: 'Izinkokhelo ezi-{count} zisemuva kwesikhathi: {amount} sezizonke.',
    plan_late_lapsed:
      'Imali ebekelwe yibhange lakho iphelelwe isikhathi ngaphambi kokuthi siyithathe.',
    plan_late_free: 'Akukubizi lutho olwengeziwe.',
    plan_late_retry: 'Sizozama futhi ngo\u2011{date}, noma ukhokhe manje.',
    plan_late_stopped: 'Asiphindi sizame ngokwethu. Sicela ukhokhe manje.',
    plan_paid: 'Kukhokhiwe',
    plan_paid_on: 'Kukhokhwe ngo\u2011{date}',
    plan_is_next: 'Okulandelayo',
    plan_planned: 'Kuhleliwe',
    plan_late: 'Semuva kwesikhathi',
    plan_cancelled: 'Kukhanselwe ukubuyiselwa kwemali',
    plan_reduced: 'Kwehliswe nge\u2011{amount} ngemva kokubuyiselwa',
    plan_returned: 'Kubuyiselwe {amount}',
    plan_row_disputed: 'Iphikiswa ebhange',
    plan_row_returned: 'Ibuyiswe yibhange',
    plan_receipt: 'Irisidi',
    plan_receipt_of: 'Irisidi lenkokhelo {number}',
    plan_card_next: 'Ikhadi lezinkokhelo ezizayo',
    plan_card_paid: 'Kukhokhwe nge',
    plan_card: '{brand} ephela ngo\u2011{last4}',
    plan_refunds: 'Ukubuyiselwa kwemali',
    plan_refunds_before: 'Ukubuyiselwa kwemali kwangaphambili okungekho ohlwini: {count}.',
    refund_requested: 'Kuceliwe',
    refund_pending: 'Kuyaqhubeka',
    refund_complete: 'Kubuyiselwe',
    refund_failed: 'Akwenziwanga',
    plan_calendar: 'Faka izinsuku ekhalendeni lakho',
    plan_no_script:
      'Ukuze ukhokhe kusenesikhathi, ushintshe ikhadi noma ubike inkinga, vula i-JavaScript bese ulayisha leli khasi futhi.',

    manage: 'Phatha izinkokhelo zakho',
    manage_hint:
      'Khokha kusenesikhathi, shintsha ikhadi, noma usitshele ukuthi kukhona okungalungile.',
    no_links: 'Ukuze ukhokhe, ushintshe ikhadi noma ubike inkinga, xhumana no\u2011{merchant}.',
    prove: 'Okokuqala, bonisa ukuthi nguwe',
    prove_why:
      'Noma ubani onekheli laleli khasi angalibona. Ukuze ukhokhe noma ushintshe ikhadi, livule ngesixhumanisi esisithumela ekhelini le-imeyili le-oda lakho.',
    prove_email: 'Ikheli le-imeyili',
    prove_send: 'Ngithumele isixhumanisi',
    prove_sending: 'Siyathumela…',
    prove_sent: 'Bheka i-imeyili yakho.',
    prove_sent_next:
      'Uma lelo kuyikheli le-oda lakho, isixhumanisi sisendleleni. Sisebenza kanye, phakathi nemizuzu eyi-10.',
    prove_wrong: 'Bhala ikheli le-imeyili, njengokuthi igama@example.com.',
    prove_limited: 'Kukaningi kakhulu. Linda imizuzu engu-15 bese uzama futhi.',
    prove_opening: 'Sivula izinkokhelo zakho…',
    prove_ended: 'Lesi sixhumanisi sesisetshenzisiwe noma siphelelwe yisikhathi.',
    prove_ended_next: 'Cela esisha. Akukho okushintshile.',
    no_connection: 'Ukuxhumana kulahlekile. Kuhlole bese uzama futhi.',
    signed_in: 'Ungenile kuze kube ngu\u2011{time}.',
    signed_out: 'Usuphumile. Cela isixhumanisi esisha ukuze uqhubeke.',
    sign_out: 'Phuma',

    manage_pay: 'Khokha {amount}',
    manage_dates_one: 'Inkokhelo yango\u2011{date}.',
    manage_dates_other: 'Izinkokhelo ezi-{count}, kusukela ngo\u2011{first} kuya ku\u2011{last}.',
    manage_next: 'Khokha okulandelayo kusenesikhathi',
    manage_rest: 'Khokha konke okusele',
    manage_card: 'Shintsha ikhadi',
    manage_card_note:
      'Ibhange lakho lingacela ukuthi uqinisekise ikhadi. Akukho okukhokhiswayo manje.',
    manage_save: 'Sebenzisa leli khadi',
    manage_late: 'Yiziphi izinkokhelo?',
    manage_late_all: 'Zonke ezingu\u2011{count}',
    manage_which: 'Yiliphi ikhadi?',
    manage_other: 'Elinye ikhadi',
    manage_steps: 'Okulandelayo, ibhange lakho lingacela ukuthi uqinisekise.',
    manage_paid: '{amount} ikhokhiwe. Siyabonga.',
    manage_replaced: 'Ikhadi lakho lishintshiwe. Izinkokhelo ezizayo zikhokhiswa {card}.',
    manage_bank_card: 'Licela ukuthi uqinisekise ikhadi. Akukho okukhokhiswayo.',
    refused_charging: 'Le nkokhelo iyakhokhiswa njengamanje. Bheka futhi ngemva komzuzu.',
    refused_refund:
      'Ukubuyiselwa kwemali kuyaqhubeka. Ungakhokha uma sekuphelile. Akukho okukhokhisiwe.',
    refused_disputed:
      'Uphikise inkokhelo ebhange lakho. Ungakhokha uma sekunqunyiwe. Akukho okukhokhisiwe.',
    refused_card:
      'Ibhange lakho alivumeli leli khadi njengamanje. Akukho okukhokhisiwe. Sebenzisa elinye ikhadi.',
    refused_changed: 'Uhlelo lwakho lushintshile phakathi. Akukho okukhokhisiwe. Lubheke futhi.',

    back: 'Emuva',
    report: 'Kukhona okungalungile',
    report_label: 'Yini engalungile?',
    report_hint: 'Sicela ungabhali izinombolo zekhadi lapha.',
    report_send: 'Thumela',
    report_sent: 'Siyabonga. Sinawo umyalezo wakho.',
    report_who_one:
      'U\u2011{merchant} uphendula nge-imeyili ekhelini le-oda lakho, lungakapheli usuku olulodwa lokusebenza. Impendulo ivela nalapha.',
    report_who_other:
      'U\u2011{merchant} uphendula nge-imeyili ekhelini le-oda lakho, zingakapheli izinsuku zokusebenza ezingu\u2011{days}. Impendulo ivela nalapha.',
    report_thread: 'Imiyalezo yakho',
    report_you: 'Wena',
    report_again: 'Bhala futhi',
    report_answered: 'Kuphenduliwe',
    report_limited:
      'Uthumele imiyalezo eminingi kakhulu namuhla. Xhumana no\u2011{merchant}, noma ubhale futhi kusasa.',
    report_empty: 'Qala ngokubhala okungalungile.',

    date: '{day} {month} {year}',
    months:
      'Januwari,Februwari,Mashi,Ephreli,Meyi,Juni,Julayi,Agasti,Septhemba,Okthoba,Novemba,Disemba',

    language: 'Ulimi',
    terms: 'Imigomo',
    privacy: 'Ubumfihlo',
    contact: 'Usizo',
    complaints: 'Izikhalazo',
    shop_contact: 'Xhumana',
    shop_vat: 'Inombolo ye-VAT',
    shop_address: 'Ikheli',
  },
  receipt: {
    heading: 'Irisidi',
    title: 'Irisidi: {amount} ku\u2011{merchant}',
    order: 'I-oda',
    payment: 'Inkokhelo',
    of: '{number} kwezi-{count}',
    date: 'Usuku',
    card: 'Ikhadi',
    refunded: 'Kubuyiselwe kamuva',
    reference: 'Inombolo yereferensi',
  },
  calendar: {
    summary: '{amount} ku\u2011{merchant}',
    description: 'Inkokhelo {number} kwezi-{count} ye-oda {order}.',
  },
  link: {
    reference: 'I-oda {order}',
    amount: 'Imali okufanele ikhokhwe',
    amount_bands: 'Kwamukelwa u-{bands}.',
    band: '{from} kuya ku-{to}',
    amount_wrong: 'Bhala imali esukela ku-{bands}.',
    email: 'Ikheli lakho le-imeyili',
    email_why: 'Irisidi yakho nezinsuku zakho zokukhokha kuthunyelwa lapho.',
    email_wrong: 'Bhala ikheli le-imeyili, njengo-thandi@example.com.',
    start: 'Qhubeka',
    start_next:
      'Akukho okukhokhisiwe okwamanje. Uzokhetha indlela yokukhokha ekhasini elilandelayo.',
    limited:
      'Kube nemizamo eminingi kakhulu manje. Akukho okukhokhisiwe. Linda umzuzu bese uzama futhi.',
    paid: 'Lokhu sekukhokhiwe',
    paid_next: 'Akusekho okukweletwayo lapha. Uma unombuzo ngakho, buza u-{merchant}.',
    cancelled: 'Lesi sixhumanisi sikhanseliwe',
    cancelled_next:
      'Akusekho okungakhokhwa lapha. Ukuze usathenga, cela u-{merchant} isixhumanisi esisha.',
    expired: 'Lesi sixhumanisi siphelelwe yisikhathi',
    expired_next:
      'Akusekho okungakhokhwa lapha. Ukuze usathenga, cela u-{merchant} isixhumanisi esisha.',
    unavailable: 'Lokhu akukwazi ukukhokhwa lapha manje',
    unavailable_next:
      'U-{merchant} akayamukeli le mali okwamanje. Akukho okukhokhisiwe. Cela u-{merchant} isixhumanisi esisha.',
    scan: 'Skena ukuze ukhokhe',
    mail_subject: '{amount} okumele uyikhokhe ku\u2011{merchant}',
    mail: 'U\u2011{merchant} ucela ukuthi ukhokhe {amount}.',
    mail_order: 'U\u2011{merchant} ucela ukuthi ukhokhe {amount} ye-oda {order}.',
    mail_next:
      'Ukhetha khona lapho indlela yokukhokha, futhi akukho mali ethathwayo uze ukwenze lokho. Isixhumanisi sisebenza kuze kube {date}, {time}.',
    mail_open: 'Qhubeka uye enkokhelweni',
    mail_footer:
      'Uthola lo mlayezo ngoba u\u2011{merchant} usinike ikheli lakho lale nkokhelo. Uma ungathenganga lapho, ungawunaki.',
  },
  statement: {
    title_tax: 'Isitatimende ne-invoyisi yentela',
    title_tax_corrected: 'Isitatimende ne-invoyisi yentela okulungisiwe',
    title: 'Isitatimende ne-invoyisi',
    title_corrected: 'Isitatimende ne-invoyisi okulungisiwe',
    number: 'Inombolo',
    corrects: 'Sithatha indawo ye',
    period: 'Isikhathi',
    made: 'Usuku',
    issuer: 'Kusuka ku',
    recipient: 'Kuya ku',
    vat_number: 'Inombolo ye-VAT {number}',
    balance: 'Ibhalansi ngomhla ka-{date}',
    reserve: 'Okugciniwe ngomhla ka-{date}',
    sum_sales: 'Okuthengisiwe',
    sum_refunds: 'Izimali ezibuyiselwe',
    sum_disputes: 'Izingxabano',
    sum_fees: 'Izimali zenkonzo',
    sum_vat: 'I-VAT yezimali zenkonzo',
    sum_reserve: 'Okugciniwe nokukhululiwe',
    sum_paid: 'Okukhokhelwe i-akhawunti yakho yasebhange',
    invoice_tax: 'I-invoyisi yentela yezimali zethu zenkonzo',
    invoice: 'I-invoyisi yezimali zethu zenkonzo',
    fees: 'Izimali zenkonzo, ngaphandle kwe-VAT',
    fees_vat: 'I-VAT',
    fees_total: 'Izimali zenkonzo ne-VAT, ezisuswe kubhalansi',
    lines: 'Imigqa',
    lines_elsewhere: 'Imigqa engu-{count} yalesi sitatimende isefayeleni le-CSV.',
    line: 'Umugqa',
    on: 'Usuku',
    kind: 'Uhlobo',
    order: 'I-oda',
    gross: 'Isamba',
    fee: 'Imali yenkonzo',
    vat: 'I-VAT',
    net: 'Okusele',
    total: 'Isamba sonke',
    kind_sale: 'Okuthengisiwe',
    kind_refund: 'Imali ebuyiselwe',
    kind_refund_reversed: 'Imali ebuyiselwe ebuyile',
    kind_dispute: 'Inkokhelo ephikiswayo',
    kind_dispute_reversed: 'Ingxabano ewiniwe',
    kind_dispute_fee: 'Imali yengxabano',
    kind_reserve: 'Okugciniwe',
    kind_reserve_released: 'Okukhululiwe kokugciniwe',
    kind_paid_out: 'Inkokhelo eya ebhange',
    kind_payout_returned: 'Inkokhelo ebuyiselwe yibhange',
    payout_title: 'Isitatimende {reference}',
    payout_day: 'Usuku lomsebenzi',
    payout_due: 'Okuzokhokhwa',
    payout_paid: 'Kukhokhiwe',
    payout_returned: 'Kubuyiselwe yibhange',
    payout_bank_reference: 'Inombolo yasebhange',
    record: 'Irekhodi lezenzo',
    payout_fees: 'Izimali zenkonzo zale nkokhelo',
    payout_note:
      'Lena akuyona i-invoyisi yentela. Isitatimende sakho senyanga siyi-invoyisi yalezi zimali zenkonzo.',
    payout_subject: 'Isitatimende {reference}: {amount}',
    payout_mail:
      'Inkokhelo yakho {reference} engu-{amount} yosuku lomsebenzi {date} ikhokhiwe. Inombolo yasebhange ithi {bank_reference}.',
    payout_mail_sums:
      'Isamba {gross}, izimali zenkonzo {fees}, i-VAT {vat}, okusele {net}. Imigqa: {count}.',
    payout_mail_long:
      'Isitatimende side kakhulu ukuthi singathunyelwa nge-imeyili. Imigqa isekhonsolini.',
    subject: 'Isitatimende sango-{month}: {reference}',
    subject_corrected: 'Isitatimende esilungisiwe sango-{month}: {reference}',
    mail: 'Isitatimende sakho sango-{month} sinenombolo {reference}.',
    mail_corrected:
      'Isitatimende esilungisiwe {reference} sango-{month} sithatha indawo ka-{corrected}. Amanani ayafana.',
    mail_sums:
      'Okuthengisiwe {sales}, izimali zenkonzo {fees}, i-VAT {vat}, okukhokhelwe i-akhawunti yakho yasebhange {paid}.',
    mail_balance: 'Ibhalansi ngomhla ka-{date}: {closing}.',
    mail_attached: 'Isitatimende sinanyathiselwe njenge-PDF nanjengefayela le-CSV.',
    mail_pdf: 'Isitatimende sinanyathiselwe njenge-PDF. Imigqa isekhonsolini.',
    footer:
      'Leli kheli lithola izitatimende zika-{merchant}. Cela inkonzo yakho yokukhokha ukuthi ilishintshe.',
  },
  letter: {
    card: 'ikhadi lakho le\u2011{brand} eligcina ngo\u2011{last4}',
    card_unknown: 'ikhadi lakho',
    standing: 'Kukhokhwe u\u2011{paid} ku\u2011{total}.',
    standing_next: 'Okulandelayo: {next_amount} ngo\u2011{next_date}.',
    see: 'Bona izinkokhelo zakho',

    paid_subject: 'U\u2011{amount} ukhokhelwe ku\u2011{merchant}',
    receipt: 'Ukhokhe u\u2011{amount} ku\u2011{merchant} nge-oda {order}.',
    receipt_later: 'Izinkokhelo ezizayo sizithatha ku\u2011{card} ngezinsuku ezingezansi.',
    charged:
      'Sithathe u\u2011{amount} ku\u2011{card}. Bekuyinkokhelo {number} kwezingu\u2011{count} ye-oda {order}.',
    charged_several:
      'Sithathe u\u2011{amount} ku\u2011{card}. Bekuyizinkokhelo {numbers} kwezingu\u2011{count} ye-oda {order}.',

    soon_subject: 'U\u2011{amount} uzokhokhiswa ngo\u2011{date}',
    soon: 'Ngo\u2011{date} sizothatha u\u2011{amount} ku\u2011{card}. Inkokhelo {number} kwezingu\u2011{count} ye-oda {order} yakwa\u2011{merchant}.',
    soon_next: 'Akudingeki wenze lutho. Ukuze usebenzise elinye ikhadi, vula izinkokhelo zakho.',
    soon_other_subject: 'Inkokhelo yakho ka\u2011{amount} yango\u2011{date} idinga elinye ikhadi',
    soon_other:
      'Inkokhelo {number} kwezingu\u2011{count} ye-oda {order} yakwa\u2011{merchant} kufanele ikhokhwe ngo\u2011{date}: u\u2011{amount}. Asisakwazi ukuthatha imali ku\u2011{card}.',
    soon_other_next: 'Vula izinkokhelo zakho ufake elinye ikhadi, ukuze kungabi bikho okuphuzayo.',

    declined_subject: 'Inkokhelo yakho ka\u2011{amount} ku\u2011{merchant} ayiphumelelanga',
    declined:
      'Ibhange lakho linqabe inkokhelo {number} kwezingu\u2011{count} ye-oda {order}: u\u2011{amount} ku\u2011{card}. Akukho mali ethathiwe.',
    declined_unasked:
      'Asiyithathanga inkokhelo {number} kwezingu\u2011{count} ye-oda {order}, u\u2011{amount} ku\u2011{card}, ngenxa yokunqatshwa kwangaphambili.',
    declined_retry:
      'Sizozama futhi ngo\u2011{retry_on}. Uma nalokho kungasebenzi, sizozama kabili futhi kungakapheli isonto. Ungakhokha nokukhokha manje, ngaleli khadi noma ngelinye.',
    declined_stopped: 'Asizami futhi ngokwethu. Sicela ukhokhe manje, ngaleli khadi noma ngelinye.',
    declined_other:
      'Asisakwazi ukuthatha imali kuleli khadi. Sicela ukhokhe manje, ngelinye ikhadi.',
    declined_next: 'Izinkokhelo ezilandelayo ziyaqhubeka njengoba kuhleliwe.',
    declined_free: 'Inkokhelo ephuzile ayikubizi lutho olwengeziwe.',
    lapsed:
      'Ngenkathi uthenga kwa\u2011{merchant}, ibhange lakho libekele i-oda {order} u\u2011{amount}. Lokho kuphelelwe isikhathi ngaphambi kokuthi sithathe imali. Akukho mali ethathiwe.',
    lapsed_next: 'Sicela ukhokhe manje. Ungasebenzisa noma yiliphi ikhadi.',
    declined_link: 'Khokha manje',

    expires_subject:
      'Ikhadi lakho laku\u2011{merchant} liphelelwa isikhathi ngaphambi kwenkokhelo yokugcina',
    expires:
      '{card} liphelelwa isikhathi ekupheleni kuka\u2011{expires}. Izinkokhelo ze-oda {order} ziyaqhubeka ngemva kwalokho.',
    expires_next: 'Vula izinkokhelo zakho ufake ikhadi elisha, ukuze kungabi bikho okunqatshwayo.',
    expires_link: 'Faka elinye ikhadi',

    replaced_subject: 'Ikhadi lakho laku\u2011{merchant} lishintshiwe',
    replaced: 'Kusukela manje izinkokhelo ze-oda {order} sizithatha ku\u2011{card}.',
    replaced_next: 'Uma ungakwenzanga lokhu, sitshele ekhasini lezinkokhelo zakho.',

    refunded_subject: 'U\u2011{amount} ubuyiswe yi\u2011{merchant}',
    refunded:
      'I\u2011{merchant} ibuyise u\u2011{amount} we-oda {order}. Ithebula likhombisa okushintshile.',
    refunded_next:
      'Okubuyela ekhadini lakho kuvela esitatimendeni sakho uma ibhange lakho seliqedile.',

    finished_subject: 'Konke kukhokhiwe: {total} ku\u2011{merchant}',
    finished: 'Wenze inkokhelo yokugcina ye-oda {order}. Ayikho enye imali ezothathwa.',

    link_subject: 'Isixhumanisi sakho sezinkokhelo zaku\u2011{merchant}',
    link: 'Sebenzisa lesi sixhumanisi ukuze ukhokhe, noma ushintshe ikhadi, le-oda {order}. Sisebenza kanye, phakathi kwemizuzu eyi-10.',
    link_next: 'Uma ungasicelanga, ungawunaki lo mlayezo. Akukho okushintshayo ngaphandle kwaso.',
    link_open: 'Vula izinkokhelo zakho',

    answer_subject: 'U\u2011{merchant} uphendule umyalezo wakho',
    answer: 'Impendulo yomyalezo wakho nge-oda {order}:',
    answer_asked: 'Ubhale wathi:',
    answer_link: 'Yifunde noma uphendule',

    payment: 'Inkokhelo',
    payment_of: 'Inkokhelo {number} kwezingu\u2011{count}',
    state_paid: 'kukhokhiwe',
    state_next: 'okulandelayo',
    state_planned: 'kuhleliwe',
    state_late: 'kwephuzile',
    state_cancelled: 'kukhanseliwe',
    footer: 'Uthola lo mlayezo ngoba uthenge ku\u2011{merchant} futhi ukhokha nge-Tranche.',
  },
};
