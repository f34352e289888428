-- Drops every view, function and type of the schema, so that nothing of an older version survives and no view stands in
-- the way of ALTER TABLE. The files that follow create today's. In a new database there is nothing to do.
--
-- Tables are never touched, nor what a table needs: the functions of the triggers on business tables, a type of a
-- column, a function in a default, a constraint or an index. Nothing is dropped with CASCADE: if an object outside the
-- schema, such as a view of yours, depends on one of these, the migration stops and names it.

DO $$
DECLARE
    victim record;
    dropped integer;
    refusal text;
BEGIN
    LOOP
        dropped := 0;
        refusal := NULL;
        FOR victim IN
            WITH RECURSIVE needed (class, id) AS (
                SELECT d.refclassid, d.refobjid
                FROM pg_depend AS d
                LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
                LEFT JOIN pg_constraint AS k ON d.classid = 'pg_constraint'::regclass AND k.oid = d.objid
                WHERE d.refclassid IN ('pg_proc'::regclass, 'pg_type'::regclass)
                  AND (d.classid IN ('pg_attrdef'::regclass, 'pg_trigger'::regclass, 'pg_policy'::regclass)
                       OR k.conrelid <> 0
                       OR c.relkind IN ('r', 'p', 'f', 'i', 'I'))
                UNION
                SELECT d.refclassid, d.refobjid
                FROM needed AS n
                JOIN pg_depend AS d ON d.classid = n.class AND d.objid = n.id
                WHERE d.refclassid IN ('pg_proc'::regclass, 'pg_type'::regclass)
            ),
            found (class, id, kind) AS (
                SELECT 'pg_class'::regclass, oid, CASE relkind WHEN 'v' THEN 'VIEW' ELSE 'MATERIALIZED VIEW' END
                FROM pg_class WHERE relnamespace = 'scheduler'::regnamespace AND relkind IN ('v', 'm')
                UNION ALL
                SELECT 'pg_proc'::regclass, oid, 'ROUTINE'
                FROM pg_proc WHERE pronamespace = 'scheduler'::regnamespace
                UNION ALL
                SELECT 'pg_type'::regclass, t.oid, CASE t.typtype WHEN 'd' THEN 'DOMAIN' ELSE 'TYPE' END
                FROM pg_type AS t
                LEFT JOIN pg_class AS c ON c.oid = t.typrelid
                WHERE t.typnamespace = 'scheduler'::regnamespace
                  AND (t.typtype IN ('e', 'd', 'r') OR c.relkind = 'c')
            )
            SELECT f.kind, (pg_identify_object(f.class, f.id, 0)).identity AS name
            FROM found AS f
            WHERE NOT EXISTS (SELECT FROM needed AS n WHERE n.class = f.class AND n.id = f.id)
              -- part of an extension, or of another object that takes it along
              AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = f.class AND d.objid = f.id AND d.deptype IN ('e', 'i'))
            -- the youngest first: what depends on something is mostly younger than that
            ORDER BY f.id DESC
        LOOP
            BEGIN
                EXECUTE format('DROP %s %s', victim.kind, victim.name);
                dropped := dropped + 1;
            EXCEPTION
                -- its turn comes in the next round, when what depends on it is gone
                WHEN dependent_objects_still_exist THEN
                    refusal := format('DROP %s %s', victim.kind, victim.name);
            END;
        END LOOP;
        EXIT WHEN dropped = 0;
    END LOOP;
    IF refusal IS NOT NULL THEN
        -- once more, so that the error that names the foreign object is the one that is seen
        EXECUTE refusal;
    END IF;
END
$$;
