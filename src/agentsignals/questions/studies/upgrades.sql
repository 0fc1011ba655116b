-- study: upgrades
-- order: 352
-- title: Versions and models
-- question: What changed when an agent's version or model changed?
-- limit: A change on the day of a version need not be made by it: the work, the settings or the provider may have
--   changed on that day, too.

-- finding: upgrades.compared
-- title: Sessions compared around changes of version or model
-- of: sessions with a time
-- unit: sessions

-- finding: upgrades.changed
-- title: Sessions around a sure change of version or model
-- of: sessions with a time
-- unit: sessions

-- table: upgrades.changes
-- title: Before and after each change
-- of: comparisons
-- columns: change:code | agent | measure | since:date | before:figure | after:figure | interval 95% of the change:figure | n sessions:count | n_after of them after:count | verdict result
-- signals: chat.pushback_type

-- name: upgrades.silent
SELECT agent, count(*) AS n FROM sessions WHERE agent_version IS NULL GROUP BY agent ORDER BY n DESC, agent
