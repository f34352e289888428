#!/bin/sh
# Run once, when the data directory is created: logins with no more rights than their work needs. Only `migrate` uses
# the superuser. The group roles get their rights from the migration.
set -eu
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" \
  --set listener="$LISTENER_PASSWORD" --set web="$WEB_PASSWORD" <<'SQL'
CREATE ROLE scheduler_listener NOLOGIN;
CREATE ROLE scheduler_monitor NOLOGIN;
CREATE ROLE scheduler_admin NOLOGIN;
CREATE ROLE scrapersky_listener LOGIN PASSWORD :'listener' IN ROLE scheduler_listener;
ALTER ROLE scrapersky_listener SET lock_timeout = '10s';
ALTER ROLE scrapersky_listener SET idle_in_transaction_session_timeout = '60s';
CREATE ROLE scrapersky_web LOGIN PASSWORD :'web' IN ROLE scheduler_admin;
CREATE ROLE scrapersky_grafana LOGIN PASSWORD :'web' CONNECTION LIMIT 10 IN ROLE scheduler_monitor;
ALTER ROLE scrapersky_grafana SET default_transaction_read_only = on;
ALTER ROLE scrapersky_grafana SET statement_timeout = '10s';
SQL
