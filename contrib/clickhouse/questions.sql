-- Questions to the rows of zaudit fleet judge, for ClickHouse (tried with 26.9). Each is a view.
--
--   clickhouse-client --multiquery < questions.sql
--   clickhouse-client --date_time_input_format best_effort --query "INSERT INTO line FORMAT JSONEachRow" < findings.jsonl
--   clickhouse-client --query "FROM worst_hosts SELECT * LIMIT 20 FORMAT PrettyCompact"
--
-- Rows of many days may be there: of each host its newest look counts, as in zaudit fleet report, and one that says that it was
-- taken in the future only where there is no other; what is waived or known to a baseline does not. What is missing, or could not
-- be judged, is of all that was inserted: empty the table, or keep one day in it.

CREATE TABLE IF NOT EXISTS line (
  kind LowCardinality(String), name String, host String, recording String, taken DateTime('UTC'), zaudit LowCardinality(String),
  rules LowCardinality(String), openzfs LowCardinality(String), standing LowCardinality(String), exit_code UInt8, error String,
  id String, rule LowCardinality(String), outcome LowCardinality(String), severity LowCardinality(String), known String,
  place String, title String, says Array(String), models Array(String), remedies Array(String),
  bugs Array(Tuple(id String, severity String))
) ENGINE = MergeTree ORDER BY (kind, name, taken);

-- a time that has not come; the clocks of two machines may differ by a day
CREATE OR REPLACE FUNCTION ahead AS (moment) -> moment > now() + INTERVAL 1 DAY;

CREATE OR REPLACE VIEW look AS
SELECT name, host, recording, taken, openzfs, standing, exit_code, zaudit, rules FROM line WHERE kind = 'report'
ORDER BY ahead(taken), taken DESC, recording DESC LIMIT 1 BY name;

CREATE OR REPLACE VIEW finding AS
SELECT * FROM line
WHERE kind = 'finding' AND outcome != 'waived' AND known = ''
  AND (name, taken, recording) IN (SELECT name, taken, recording FROM look);

-- how many hosts stand how; those of which nothing is known cannot be told
CREATE OR REPLACE VIEW standings AS
SELECT standing, count() AS hosts
FROM (SELECT toString(standing) AS standing FROM look UNION ALL SELECT 'cannot tell' FROM line WHERE kind IN ('unjudged', 'missing'))
GROUP BY standing ORDER BY hosts DESC, standing;

-- the worst hosts, and what is worst there
CREATE OR REPLACE VIEW worst_hosts AS
SELECT look.name AS name, any(look.standing) AS standing,
  countIf(outcome = 'fail' AND severity = 'critical') AS critical,
  countIf(outcome = 'unknown' AND severity = 'critical') AS may_be_critical,
  countIf(outcome = 'fail' AND severity = 'high') AS high,
  argMin(rule, indexOf(['critical', 'high', 'medium', 'low'], toString(severity)) * 2 + (outcome != 'fail')) AS worst,
  any(look.openzfs) AS openzfs, any(look.taken) AS taken, any(look.recording) AS recording
FROM look LEFT JOIN finding ON finding.name = look.name
GROUP BY look.name
ORDER BY indexOf(['stalled', 'damaged', 'lost', 'corrupted', 'cannot tell', 'waived', 'one failure away', 'at risk', 'on the word', 'kept'],
  toString(standing)), critical DESC, may_be_critical DESC, high DESC, name;

-- on how many hosts each rule fails, and on how many nobody can tell
CREATE OR REPLACE VIEW rules_by_hosts AS
SELECT rule, argMin(severity, indexOf(['critical', 'high', 'medium', 'low'], toString(severity))) AS gravest, any(title) AS title,
  uniqExactIf(name, outcome = 'fail') AS fails_on, uniqExactIf(name, outcome = 'unknown') AS undecided_on
FROM finding GROUP BY rule
ORDER BY fails_on = 0, indexOf(['critical', 'high', 'medium', 'low'], toString(gravest)), fails_on DESC, rule;

CREATE OR REPLACE VIEW drives_by_finding AS
SELECT model, rule, uniqExactIf(name, outcome = 'fail') AS fails_on, uniqExactIf(name, outcome = 'unknown') AS undecided_on
FROM finding ARRAY JOIN models AS model
GROUP BY model, rule ORDER BY fails_on DESC, undecided_on DESC, model, rule;

-- which hosts have the bug that was published today?
CREATE OR REPLACE VIEW releases_by_advisory AS
SELECT openzfs, bug.1 AS rule, uniqExactIf(name, outcome = 'fail') AS fails_on, uniqExactIf(name, outcome = 'unknown') AS undecided_on
FROM finding ARRAY JOIN bugs AS bug
GROUP BY openzfs, rule ORDER BY fails_on DESC, undecided_on DESC, rule;

-- what would decide what is undecided
CREATE OR REPLACE VIEW undecided_by_remedy AS
SELECT remedy, uniqExact(name) AS hosts
FROM finding ARRAY JOIN remedies AS remedy WHERE outcome = 'unknown'
GROUP BY remedy ORDER BY hosts DESC, remedy;

-- failures that were not there in the look before, on hosts that had one
CREATE OR REPLACE VIEW new_since AS
SELECT finding.name AS name, severity, rule, place, title, finding.id AS id
FROM finding
INNER JOIN (
  SELECT name, argMax((taken, recording), (NOT ahead(taken), taken, recording)) AS at FROM line
  WHERE kind = 'report' AND (name, taken, recording) NOT IN (SELECT name, taken, recording FROM look)
  GROUP BY name) AS before ON before.name = finding.name
LEFT ANTI JOIN (SELECT name, (taken, recording) AS at, id FROM line WHERE kind = 'finding' AND outcome = 'fail') AS failed
  ON failed.name = before.name AND failed.at = before.at AND failed.id = finding.id
WHERE outcome = 'fail'
ORDER BY indexOf(['critical', 'high', 'medium', 'low'], toString(severity)), rule, name;

-- who did not come, and what could not be judged
CREATE OR REPLACE VIEW hosts_missing AS
SELECT kind, name, recording, error FROM line WHERE kind IN ('missing', 'unjudged') ORDER BY kind, name, recording;

-- whose clock is wrong, or who says so
CREATE OR REPLACE VIEW taken_in_the_future AS
SELECT name, taken, recording FROM line WHERE kind = 'report' AND ahead(taken) ORDER BY name, taken;
