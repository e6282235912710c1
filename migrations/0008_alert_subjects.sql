-- What an alert is about, so that no reader has to parse its prose.

alter table alerts add column subject_id uuid;
update alerts set subject_id = substring(detail from '^Callback ([0-9a-f-]{36}) ')::uuid
  where kind = 'callback_exhausted';
