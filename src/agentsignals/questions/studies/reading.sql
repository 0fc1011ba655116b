-- study: reading
-- order: 370
-- title: What was read and what was skipped
-- question: What do these figures rest on, and what is missing?
-- context: both

-- name: reading.totals
SELECT (SELECT count(*) FROM artifacts) AS files, (SELECT sum(records) FROM artifacts) AS records,
  (SELECT sum(skipped) FROM artifacts) AS skipped, (SELECT count(*) FROM events WHERE kind = 'unknown') AS unknown,
  (SELECT count(*) FROM signals) AS n_values,
  (SELECT count(*) FROM signals WHERE absent_detail LIKE 'internal_error%') AS internal

-- name: reading.formats
SELECT a.format AS format, count(*) AS files, any_value(coalesce(s.sessions, 0)) AS sessions,
  sum(records) AS records, sum(skipped) AS skipped, sum(bytes) AS bytes
FROM artifacts a
LEFT JOIN (SELECT format, count(*) AS sessions FROM sessions GROUP BY format) s USING (format)
GROUP BY a.format ORDER BY files DESC, a.format

-- name: reading.skips
SELECT path, skipped_reasons FROM artifacts WHERE skipped_reasons <> '{}' ORDER BY path

-- name: reading.notes
SELECT trim(regexp_replace(note, '[0-9a-f-]{12,}', '…')) AS note, count(*) AS files
FROM artifacts WHERE note IS NOT NULL
GROUP BY 1 ORDER BY files DESC, 1

-- name: reading.absent
SELECT absent, count(*) AS n, count(DISTINCT signal) AS signals, count(DISTINCT session_id) AS sessions
FROM signals WHERE absent IS NOT NULL
GROUP BY absent ORDER BY n DESC, absent

-- table: reading.no_traces
-- title: Files that are no traces, by ending
-- columns: ending:code | files:count
-- of: files

-- table: reading.notes
-- title: Copies and continuations that were not counted twice
-- columns: note what was found | files:count
-- of: files

-- table: reading.absent
-- title: Values that are absent, by reason
-- columns: reason | values:count | signals:count | sessions:count
-- of: absent values
-- note: Absent is not zero: these values are in no figure of this report.

-- table: reading.formats
-- title: What was read, by format
-- columns: format | files:count | sessions:count | records records read:count | skipped:count | bytes size:bytes
-- of: files
-- note: A format without sessions of its own adds to sessions of others, or holds none.

-- table: reading.reasons
-- title: What was skipped, by reason
-- columns: reason | records:count | files:count | example for example:code
-- of: skipped records

-- chart: reading.formats
-- title: Bytes by format
-- of: files
-- note: files in brackets

-- finding: reading.files
-- title: Files read
-- of: files
-- unit: files
SELECT count(*) FROM artifacts

-- finding: reading.records
-- title: Records read
-- of: records found
-- unit: records
SELECT coalesce(sum(records), 0) FROM artifacts

-- finding: reading.skipped
-- title: Records skipped
-- of: records found
-- unit: records
-- note: a file that is no known format counts as one record
-- headline: yes
SELECT coalesce(sum(skipped), 0) FROM artifacts

-- finding: reading.no_traces
-- title: Files beside them that are no traces
-- of: files found
-- unit: files
-- note: not JSON; they were not read

-- finding: reading.unknown
-- title: Records read but not understood
-- of: records read
-- unit: records
-- note: kept whole, as events of kind unknown
SELECT count(*) FROM events WHERE kind = 'unknown'

-- finding: reading.internal_errors
-- title: Values that an error of this program prevented
-- of: values
-- unit: values
SELECT count(*) FROM signals WHERE absent_detail LIKE 'internal_error%'
