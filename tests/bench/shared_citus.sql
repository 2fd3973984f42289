-- How a shared index shards on Citus. Run by hand on Citus 12.1.12 and PostgreSQL 15.18 with pgvector 0.8.2, a coordinator
-- and two workers: anna published 473 passages of two workspaces, which `shared verify` found whole, and of one again cut
-- otherwise; bob mirrored the one that she let him read, with a change and a removal, and lost it when she took it back;
-- neither coordinator nor worker gave him a row of the other one, or of a shard.
--
--   memory-tui shared init --admit anna          on the coordinator, as a superuser: Citus spreads roles for nobody else
--   psql -v ON_ERROR_STOP=1 -f shared_citus.sql  likewise, before anything is published
--   memory-tui shared init                       again, after each sharding: it drops functions, which this makes anew
--   memory-tui shared publish --once; memory-tui shared verify
--
-- Small tables go to every node, so that functions join them with any shard. Notes, passages and vectors are sharded by
-- workspace, of which a mirror reads one at a time. Each note that is published writes to `workspace`, and with that to
-- every node, which agree: about 60 ms a note here. More nodes hold more, and publish no faster.
\set ON_ERROR_STOP on
select citus_set_coordinator_host(current_setting('listen_addresses'), current_setting('port')::int)
where not exists (select from pg_dist_node where groupid = 0);
select create_reference_table('memory_tui.about');
select create_reference_table('memory_tui.workspace');
select create_reference_table('memory_tui.member');
select create_distributed_table('memory_tui.file', 'ws', shard_count => 32);
select create_distributed_table('memory_tui.chunk', 'ws', colocate_with => 'memory_tui.file');
select create_distributed_table('memory_tui.vec', 'ws', colocate_with => 'memory_tui.file');

-- Shows 3 rows "reference", 3 rows "distributed" of one colocation id.
select table_name, citus_table_type, colocation_id, shard_count from citus_tables order by 2, 1;
-- Shows 0 for each node: row rights are on, and bind the owner, on every shard.
select result from run_command_on_all_nodes(
    'select count(*) from pg_class where relname ~ ''^(file|chunk|vec)_\d+$'' and not (relrowsecurity and relforcerowsecurity)');
-- Shows one task, on one shard.
explain (costs off) select * from memory_tui.chunk where tenant = 'default' and ws = 1 and path = any('{MEMORY.md}');
-- Shows after a publication as many passages as `memory-tui shared publish` told.
select ws, sum(chunks) from memory_tui.file where state <> 'gone' group by ws order by ws;
