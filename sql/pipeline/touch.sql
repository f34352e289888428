-- updated_at of the pipeline's tables, kept by the database whoever writes.

CREATE OR REPLACE FUNCTION scheduler.touch() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    NEW.updated_at := now();
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION scheduler.touch() IS 'Trigger: updated_at is the time of the last change.';

CREATE OR REPLACE TRIGGER touch BEFORE UPDATE ON public.tenant FOR EACH ROW EXECUTE FUNCTION scheduler.touch();
CREATE OR REPLACE TRIGGER touch BEFORE UPDATE ON public.place_search FOR EACH ROW EXECUTE FUNCTION scheduler.touch();
CREATE OR REPLACE TRIGGER touch BEFORE UPDATE ON public.place FOR EACH ROW EXECUTE FUNCTION scheduler.touch();
CREATE OR REPLACE TRIGGER touch BEFORE UPDATE ON public.local_business FOR EACH ROW EXECUTE FUNCTION scheduler.touch();
CREATE OR REPLACE TRIGGER touch BEFORE UPDATE ON public.domain FOR EACH ROW EXECUTE FUNCTION scheduler.touch();
CREATE OR REPLACE TRIGGER touch BEFORE UPDATE ON public.sitemap_file FOR EACH ROW EXECUTE FUNCTION scheduler.touch();
CREATE OR REPLACE TRIGGER touch BEFORE UPDATE ON public.page FOR EACH ROW EXECUTE FUNCTION scheduler.touch();
CREATE OR REPLACE TRIGGER touch BEFORE UPDATE ON public.contact FOR EACH ROW EXECUTE FUNCTION scheduler.touch();
