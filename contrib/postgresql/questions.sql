-- Questions to the rows of zaudit fleet judge, for PostgreSQL 13 or newer. Each is a view.
--
--   psql -v ON_ERROR_STOP=1 -f questions.sql fleet < findings.jsonl && psql -c 'TABLE rules_by_hosts' fleet
--
-- Run again with rows of another day, it adds them; of each host its newest look counts, and one that says that it was taken in
-- the future only where there is no other.

CREATE TABLE IF NOT EXISTS line (row jsonb NOT NULL);

-- a line is one value: neither of these two bytes stands in JSON
\copy line FROM pstdin WITH (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02')

-- a time that has not come; the clocks of two machines may differ by a day
CREATE OR REPLACE FUNCTION ahead(moment text) RETURNS boolean LANGUAGE sql STABLE
AS $$ SELECT moment::timestamptz > now() + interval '1 day' $$;

CREATE OR REPLACE VIEW look AS
SELECT DISTINCT ON (row->>'name') row->>'name' AS name, row->>'taken' AS taken, row->>'recording' AS recording,
  row->>'standing' AS standing, row->>'openzfs' AS openzfs
FROM line WHERE row->>'kind' = 'report'
ORDER BY row->>'name', ahead(row->>'taken'), (row->>'taken')::timestamptz DESC, row->>'recording' DESC;

CREATE OR REPLACE VIEW finding AS
SELECT look.name, look.openzfs, f.rule, f.outcome, f.severity, f.place, f.title, line.row
FROM line
CROSS JOIN jsonb_to_record(row) AS f(name text, taken text, recording text, rule text, outcome text, severity text,
  place text, title text, known text)
JOIN look ON (f.name, f.taken, f.recording) = (look.name, look.taken, look.recording)
WHERE row->>'kind' = 'finding' AND f.outcome <> 'waived' AND coalesce(f.known, '') = '';

CREATE OR REPLACE VIEW standings AS
SELECT standing, count(*) AS hosts
FROM (SELECT standing FROM look
      UNION ALL SELECT 'cannot tell' FROM line WHERE row->>'kind' IN ('unjudged', 'missing')) AS every
GROUP BY standing ORDER BY hosts DESC, standing;

CREATE OR REPLACE VIEW rules_by_hosts AS
SELECT rule, count(DISTINCT name) FILTER (WHERE outcome = 'fail') AS fails_on,
  count(DISTINCT name) FILTER (WHERE outcome = 'unknown') AS undecided_on
FROM finding GROUP BY rule ORDER BY fails_on DESC, undecided_on DESC, rule;

CREATE OR REPLACE VIEW drives_by_finding AS
SELECT model, rule, count(DISTINCT name) FILTER (WHERE outcome = 'fail') AS fails_on,
  count(DISTINCT name) FILTER (WHERE outcome = 'unknown') AS undecided_on
FROM finding CROSS JOIN jsonb_array_elements_text(row->'models') AS model
GROUP BY model, rule ORDER BY fails_on DESC, undecided_on DESC, model, rule;

CREATE OR REPLACE VIEW releases_by_advisory AS
SELECT openzfs, bug->>'id' AS rule, count(DISTINCT name) FILTER (WHERE outcome = 'fail') AS fails_on,
  count(DISTINCT name) FILTER (WHERE outcome = 'unknown') AS undecided_on
FROM finding CROSS JOIN jsonb_array_elements(row->'bugs') AS bug GROUP BY openzfs, bug->>'id' ORDER BY fails_on DESC, undecided_on DESC, rule;

CREATE OR REPLACE VIEW hosts_missing AS
SELECT row->>'kind' AS kind, row->>'name' AS name, row->>'recording' AS recording, row->>'error' AS error
FROM line WHERE row->>'kind' IN ('missing', 'unjudged') ORDER BY 1, 2, 3;

-- whose clock is wrong, or who says so
CREATE OR REPLACE VIEW taken_in_the_future AS
SELECT row->>'name' AS name, row->>'taken' AS taken, row->>'recording' AS recording
FROM line WHERE row->>'kind' = 'report' AND ahead(row->>'taken') ORDER BY 1, 2;
