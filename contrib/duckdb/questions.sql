-- Questions to the rows of zaudit fleet judge, for DuckDB 1.1 or newer. Each is a view.
--
--   duckdb fleet.duckdb -c "SET VARIABLE rows = 'findings.jsonl'" -c ".read questions.sql" -c "FROM worst_hosts LIMIT 20"
--
-- rows: a file or a pattern of files, of one day or of many. before: those of an earlier time, for new_since; optional.
-- Times are UTC. Of each host its newest look counts, as in zaudit fleet report, and one that says that it was taken in the future
-- only where there is no other; what is waived or known to a baseline does not.

CREATE OR REPLACE MACRO lines_of(files) AS TABLE
SELECT coalesce(name, host) AS name, * EXCLUDE (name)
FROM read_json(files, format = 'newline_delimited', maximum_object_size = 16777216, columns = {
  kind: 'VARCHAR', name: 'VARCHAR', host: 'VARCHAR', recording: 'VARCHAR', taken: 'TIMESTAMP', zaudit: 'VARCHAR',
  rules: 'VARCHAR', openzfs: 'VARCHAR', standing: 'VARCHAR', exit_code: 'INTEGER', error: 'VARCHAR', id: 'VARCHAR',
  rule: 'VARCHAR', outcome: 'VARCHAR', severity: 'VARCHAR', harm: 'VARCHAR', event: 'VARCHAR', known: 'VARCHAR',
  place: 'VARCHAR', title: 'VARCHAR', says: 'VARCHAR[]', models: 'VARCHAR[]', remedies: 'VARCHAR[]',
  bugs: 'STRUCT(id VARCHAR, severity VARCHAR)[]'
});

CREATE OR REPLACE TABLE line AS FROM lines_of(getvariable('rows'));
CREATE OR REPLACE TABLE line_before AS FROM lines_of(coalesce(getvariable('before'), getvariable('rows')));

CREATE OR REPLACE MACRO gravity(severity) AS list_position(['critical', 'high', 'medium', 'low'], severity);

-- a time that has not come; the clocks of two machines may differ by a day
CREATE OR REPLACE MACRO ahead(moment) AS epoch(moment) > epoch(now()) + 86400;

-- the newest look at each host
CREATE OR REPLACE VIEW look AS
SELECT name, host, recording, taken, openzfs, standing, exit_code, zaudit, rules FROM line WHERE kind = 'report'
QUALIFY row_number() OVER (PARTITION BY name ORDER BY ahead(taken), taken DESC, recording DESC) = 1;

-- what it found, and nobody has waived or known
CREATE OR REPLACE VIEW finding AS
SELECT each.* FROM line AS each
JOIN look ON look.name = each.name AND look.taken = each.taken AND look.recording IS NOT DISTINCT FROM each.recording
WHERE each.kind = 'finding' AND each.outcome <> 'waived' AND coalesce(each.known, '') = '';

-- how many hosts stand how; those of which nothing is known cannot be told
CREATE OR REPLACE VIEW standings AS
SELECT standing, count(*) AS hosts
FROM (SELECT standing FROM look UNION ALL SELECT 'cannot tell' FROM line WHERE kind IN ('unjudged', 'missing'))
GROUP BY standing ORDER BY hosts DESC, standing;

-- the worst hosts, and what is worst there
CREATE OR REPLACE VIEW worst_hosts AS
SELECT name, any_value(look.standing) AS standing,
  count(*) FILTER (outcome = 'fail' AND severity = 'critical') AS critical,
  count(*) FILTER (outcome = 'unknown' AND severity = 'critical') AS may_be_critical,
  count(*) FILTER (outcome = 'fail' AND severity = 'high') AS high,
  arg_min(rule, gravity(severity) * 2 + (outcome <> 'fail')::INTEGER) AS worst,
  any_value(look.openzfs) AS openzfs, any_value(look.taken) AS taken, any_value(look.recording) AS recording
FROM look LEFT JOIN finding USING (name)
GROUP BY name
ORDER BY list_position(['stalled', 'damaged', 'lost', 'corrupted', 'cannot tell', 'waived', 'one failure away', 'at risk', 'on the word', 'kept'],
  any_value(look.standing)), critical DESC, may_be_critical DESC, high DESC, name;

-- on how many hosts each rule fails, and on how many nobody can tell
CREATE OR REPLACE VIEW rules_by_hosts AS
SELECT rule, arg_min(severity, gravity(severity)) AS severity, any_value(title) AS title,
  count(DISTINCT name) FILTER (outcome = 'fail') AS fails_on,
  count(DISTINCT name) FILTER (outcome = 'unknown') AS undecided_on
FROM finding GROUP BY rule
ORDER BY fails_on = 0, gravity(arg_min(severity, gravity(severity))), fails_on DESC, rule;

CREATE OR REPLACE VIEW drives_by_finding AS
SELECT model, rule, count(DISTINCT name) FILTER (outcome = 'fail') AS fails_on,
  count(DISTINCT name) FILTER (outcome = 'unknown') AS undecided_on
FROM (SELECT unnest(models) AS model, rule, name, outcome FROM finding)
GROUP BY model, rule ORDER BY fails_on DESC, undecided_on DESC, model, rule;

-- which hosts have the bug that was published today?
CREATE OR REPLACE VIEW releases_by_advisory AS
SELECT openzfs, bug.id AS rule, count(DISTINCT name) FILTER (outcome = 'fail') AS fails_on,
  count(DISTINCT name) FILTER (outcome = 'unknown') AS undecided_on
FROM (SELECT unnest(bugs) AS bug, openzfs, name, outcome FROM finding)
GROUP BY ALL ORDER BY fails_on DESC, undecided_on DESC, rule;

-- failures that were not there before, on hosts that were
CREATE OR REPLACE VIEW new_since AS
WITH looked AS (
  SELECT * FROM line_before WHERE kind = 'report'
  QUALIFY row_number() OVER (PARTITION BY name ORDER BY ahead(taken), taken DESC, recording DESC) = 1),
failed AS (
  SELECT each.name, each.id FROM line_before AS each
  JOIN looked ON looked.name = each.name AND looked.taken = each.taken
    AND looked.recording IS NOT DISTINCT FROM each.recording
  WHERE each.kind = 'finding' AND each.outcome = 'fail')
SELECT name, severity, rule, place, title, id FROM finding
SEMI JOIN looked USING (name)
ANTI JOIN failed USING (name, id)
WHERE outcome = 'fail'
ORDER BY gravity(severity), rule, name;

-- what would decide what is undecided
CREATE OR REPLACE VIEW undecided_by_remedy AS
SELECT remedy, count(DISTINCT name) AS hosts, arg_min(severity, gravity(severity)) AS may_be
FROM (SELECT unnest(remedies) AS remedy, name, severity FROM finding WHERE outcome = 'unknown')
GROUP BY remedy ORDER BY hosts DESC, remedy;

-- who did not come, and what could not be judged
CREATE OR REPLACE VIEW hosts_missing AS
SELECT kind, name, recording, error FROM line WHERE kind IN ('missing', 'unjudged') ORDER BY kind, name, recording;

-- whose clock is wrong, or who says so
CREATE OR REPLACE VIEW taken_in_the_future AS
SELECT name, taken, recording FROM line WHERE kind = 'report' AND ahead(taken) ORDER BY name, taken;
