-- An attempt is written and closed in the time of a delivery: it has one name, and one index.

-- A callback and a number name an attempt. Its id tells whoever wrote it whether it is its own.
alter table callback_attempts drop constraint callback_attempts_pkey;
alter table callback_attempts drop constraint callback_attempts_merchant_id_callback_id_number_key;
alter table callback_attempts add primary key (merchant_id, callback_id, number);

-- Attempts are made from the row of their callback by the statement that writes them, and no
-- callback is ever deleted: looking for it once more would lock and rewrite it each time.
alter table callback_attempts drop constraint callback_attempts_callback_id_merchant_id_fkey;

-- What went over the wire, in the order in which it did. Nothing looks inside.
alter table callback_attempts
  alter column request_headers type json,
  alter column response_headers type json,
  alter column timings type json;
