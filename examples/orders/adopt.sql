-- The one call: from now on "paid" means queued. No column is added or changed.
SELECT scheduler.create_workflow('invoice', 'shop.orders',
    status_column => 'state', error_column => 'note',
    queued => 'paid', processing => 'invoicing', completed => 'invoiced', failed => 'problem');
