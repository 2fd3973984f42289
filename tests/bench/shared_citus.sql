-- How a shared index shards on Citus, to be tried by hand: NOT RUN HERE. Citus is neither in Debian 12 nor on PyPI, so
-- nothing below is shown; a mistake of it costs nothing, as everything can be published again.
--
--   memory-tui shared init --admit anna          on the coordinator, which has citus and vector, its workers vector
--   psql -v ON_ERROR_STOP=1 -f shared_citus.sql  as the owner, before anything is published
--   memory-tui shared publish --once; memory-tui shared verify
--
-- Small tables go to every node, so that functions join them with pg_roles and with any shard. Notes, passages and
-- vectors are sharded by workspace, of which a mirror reads one at a time. Each note that is published writes to
-- `workspace` and with that to every node: fewer nodes publish faster, more nodes hold more.
\set ON_ERROR_STOP on
select citus_set_coordinator_host(current_setting('listen_addresses'), current_setting('port')::int)
where not exists (select from pg_dist_node where groupid = 0);
select create_reference_table(format('memory_tui.%I', name)) from unnest(array['about', 'workspace', 'member']) name;
select create_distributed_table('memory_tui.file', 'ws', shard_count => 32);
select create_distributed_table(format('memory_tui.%I', name), 'ws', colocate_with => 'memory_tui.file')
from unnest(array['chunk', 'vec']) name;

-- Expected: 3 rows "reference", 3 rows "distributed" of one colocation id.
select table_name, citus_table_type, colocation_id, shard_count from citus_tables order by 2, 1;
-- Expected: row rights are on, and bind the owner, on every shard.
select result from run_command_on_all_nodes(
    'select count(*) from pg_class where relname ~ ''^(file|chunk|vec)_\d+$'' and not (relrowsecurity and relforcerowsecurity)');
-- Expected: one task, on one shard.
explain (costs off) select * from memory_tui.chunk where tenant = 'default' and ws = 1 and path = any('{MEMORY.md}');
-- Expected after a publication: as many passages as `memory-tui shared publish` told.
select ws, sum(chunks) from memory_tui.file where state <> 'gone' group by ws order by ws;
