-- The shop as it was before: its own table, its own words, rows in every state.
CREATE SCHEMA shop;
CREATE TABLE shop.orders (
    id      integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    country text NOT NULL,
    amount  numeric(10, 2) NOT NULL,
    state   text NOT NULL DEFAULT 'new',
    note    text
);
CREATE TABLE shop.invoice (order_id integer PRIMARY KEY REFERENCES shop.orders, total numeric(10, 2) NOT NULL);
INSERT INTO shop.orders (country, amount, state)
VALUES ('AT', 100, 'paid'), ('DE', 50, 'new'), ('AT', -3, 'paid'), ('NZ', 20, 'paid');
