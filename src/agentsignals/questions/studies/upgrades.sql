-- study: upgrades
-- order: 352
-- title: Versions and models
-- question: What changed when an agent's version or model changed?
-- limit: A change on the day of a version need not be made by it: the work, the settings or the provider may have
--   changed on that day, too.

-- finding: upgrades.compared
-- title: Measures compared at changes of version or model
-- of: sessions with a time
-- unit: comparisons

-- finding: upgrades.changed
-- title: Measures that changed with a version or model
-- of: sessions with a time
-- unit: comparisons

-- table: upgrades.changes
-- title: Before and after each change
-- of: comparisons
-- columns: change:code | agent | since:date | measure | before:figure | after:figure | interval 95% of the change:figure | n_before sessions before:count | n_after after:count | verdict result
-- signals: chat.pushback_type

-- name: upgrades.silent
SELECT agent, count(*) AS n FROM sessions WHERE agent_version IS NULL GROUP BY agent ORDER BY n DESC, agent
