-- A merchant that lost the answer to a create finds its checkout by its own reference (decision 0052).

create index checkouts_by_reference on checkouts (merchant_id, client_reference_id, number desc);
