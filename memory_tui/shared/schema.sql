-- The schema of a shared index: nobody reads or writes but by the functions below, which ask for the membership of
-- `session_user` and, to write, for the epoch. A member has no right to a table: a right to write is a right to lock, and
-- who may select learns by `explain` which rows there are. Row rights that bind the owner too stand behind that.
-- {vector} is the schema of pgvector.
-- It can be run again: tables are made where they are missing, everything else is made anew.

create schema if not exists memory_tui;

create table if not exists memory_tui.about (
    only_row boolean primary key default true check (only_row),
    version int not null);

-- A workspace; every key begins with (tenant, ws), so that Citus can shard by it. `incarnation` is another one when the
-- generations begin anew; `epoch` grows with each take-over, and an older one changes nothing. `space` is the provider,
-- model, key and dimensions of its vectors. `index_state` stands for what was published last of the local index
-- `index_uuid`, whose rowids begin at `base` here.
create table if not exists memory_tui.workspace (
    tenant text not null, ws bigint generated always as identity, name text not null,
    recipe text not null default '', space text not null default '', dims int not null default 0,
    epoch bigint not null default 0, incarnation uuid not null default gen_random_uuid(),
    generation bigint not null default 0, changes_from bigint not null default 0,
    publisher text not null default '', heard timestamptz not null default now(),
    index_uuid text not null default '', index_state text not null default '', base bigint not null default 0,
    primary key (tenant, ws), unique (tenant, name));

-- Who may read a workspace: a login, or a role that logins have. `publishes` also lets it write.
create table if not exists memory_tui.member (
    tenant text not null, ws bigint not null, who text not null, publishes boolean not null default false,
    primary key (tenant, ws, who),
    foreign key (tenant, ws) references memory_tui.workspace on delete cascade);

-- A note; one in state `gone` was removed in that generation. `mark` stands for the row of the local index, `first_seq`
-- is the place of its first chunk in the publisher's order. A title may hold what no text of PostgreSQL can.
create table if not exists memory_tui.file (
    tenant text not null, ws bigint not null, path text not null, source text not null, hash text not null,
    mtime bigint not null, size bigint not null, state text not null, detail text not null,
    indexed_at double precision not null, title bytea not null, dated text not null, mark text not null,
    first_seq bigint not null, chunks int not null, generation bigint not null,
    primary key (tenant, ws, path),
    foreign key (tenant, ws) references memory_tui.workspace on delete cascade);
create index if not exists file_by_generation on memory_tui.file (tenant, ws, generation);

-- A passage; `prefix` are the words above it. Text is UTF-8 that may hold what no text of PostgreSQL can. `annotations`
-- are importance, triggers and project as JSON, empty for none.
create table if not exists memory_tui.chunk (
    tenant text not null, ws bigint not null, seq bigint not null, path text not null, ordinal int not null,
    occurrence int not null, start_line int not null, end_line int not null, chunk_id text not null,
    hash text not null, annotations text not null, prefix bytea not null, text bytea not null,
    primary key (tenant, ws, seq),
    foreign key (tenant, ws) references memory_tui.workspace on delete cascade);
create index if not exists chunk_by_path on memory_tui.chunk (tenant, ws, path);

-- The vector of a passage (place 0) and of its windows (from 1), with the hash of the text that each is of: narrow, for
-- the nearest of a hundred thousand are found by reading all of them.
create table if not exists memory_tui.vec (
    tenant text not null, ws bigint not null, seq bigint not null, place int not null, hash text not null,
    vec {vector}.vector not null,
    primary key (tenant, ws, seq, place),
    foreign key (tenant, ws) references memory_tui.workspace on delete cascade);
do $$
begin
    -- Citus takes no such statement once the table is sharded.
    if (select attstorage <> 'm' from pg_attribute where attrelid = 'memory_tui.vec'::regclass and attname = 'vec') then
        alter table memory_tui.vec alter column vec set storage main;
    end if;
end
$$;
create index if not exists vec_by_hash on memory_tui.vec (tenant, hash);

-- Workspaces that were published since the server crashed last, for that empties the table: notes are committed without
-- waiting for the disk, so a crash takes back what mirrors may have seen.
create unlogged table if not exists memory_tui.since_crash (
    tenant text not null, ws bigint not null, primary key (tenant, ws));

-- --- rights ---------------------------------------------------------------------------------------------------------

-- Functions are made anew, whatever they took before, and with them the policies that ask them.
do $$
declare old regprocedure;
begin
    for old in select oid::regprocedure from pg_catalog.pg_proc where pronamespace = 'memory_tui'::regnamespace loop
        execute format('drop function %s cascade', old);
    end loop;
end
$$;

-- The workspaces of a tenant that the login may read. Who logs in is a value in each query, for on another node of Citus
-- the owner logs in.
create or replace function memory_tui.readable(t text) returns bigint[]
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare login name := session_user;
begin
    return array(select m.ws from memory_tui.member m
        where m.tenant = t and pg_has_role(login, to_regrole(quote_ident(m.who)), 'member'));
end
$$;

create or replace function memory_tui.reads(t text, w bigint) returns boolean
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare login name := session_user;
begin
    return exists (select from memory_tui.member m
        where m.tenant = t and m.ws = w and pg_has_role(login, to_regrole(quote_ident(m.who)), 'member'));
end
$$;

revoke all on schema memory_tui from public;
grant usage on schema memory_tui to memory_tui_member;
do $$
declare name text;
begin
    foreach name in array array['about', 'workspace', 'member', 'file', 'chunk', 'vec', 'since_crash'] loop
        execute format('revoke all on memory_tui.%I from public, memory_tui_member', name);
        execute format('alter table memory_tui.%I enable row level security, force row level security', name);
        execute format('drop policy if exists owner on memory_tui.%I', name);
        execute format('create policy owner on memory_tui.%I to current_user using (true) with check (true)', name);
        execute format('drop policy if exists reader on memory_tui.%I', name);
        execute format('create policy reader on memory_tui.%I for select to memory_tui_member using (%s)', name,
            case name when 'about' then 'true' else 'memory_tui.reads(tenant, ws)' end);
    end loop;
    grant select on memory_tui.about to memory_tui_member;
end
$$;

-- --- reading --------------------------------------------------------------------------------------------------------

-- Each asks for membership once, then reads. They are plpgsql, for Citus plans no parameters of SQL functions.

-- Those of these names, those that one of these roles may read, or every one; `silence` is how long its publisher was not
-- heard of, in seconds.
create or replace function memory_tui.workspaces(t text, every boolean, names text[], roles text[])
returns table (name text, ws bigint, recipe text, incarnation text, generation bigint, changes_from bigint, base bigint,
    silence double precision)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare mine bigint[] := memory_tui.readable(t);
begin
    return query select w.name, w.ws, w.recipe, w.incarnation::text, w.generation, w.changes_from, w.base,
        extract(epoch from clock_timestamp() - w.heard)::double precision
    from memory_tui.workspace w
    where w.tenant = t and w.ws = any(mine) and (every or w.name = any(names) or exists (
        select from memory_tui.member m where m.tenant = w.tenant and m.ws = w.ws and m.who = any(roles)))
    order by w.name;
end
$$;

create or replace function memory_tui.passages(t text, numbers bigint[]) returns bigint
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare mine bigint[] := memory_tui.readable(t);
begin
    return (select coalesce(sum(f.chunks), 0) from memory_tui.file f
        where f.tenant = t and f.ws = any(numbers) and f.ws = any(mine));
end
$$;

create or replace function memory_tui.files(t text, w bigint, since bigint) returns setof memory_tui.file
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    if memory_tui.reads(t, w) then
        return query select * from memory_tui.file where tenant = t and ws = w and generation > since;
    end if;
end
$$;

-- By each path in turn: how many rows tables hold that nobody has analyzed yet, no planner knows.
create or replace function memory_tui.chunks(t text, w bigint, paths text[]) returns setof memory_tui.chunk
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    if memory_tui.reads(t, w) then
        return query select c.* from unnest(paths) p cross join lateral (
            select * from memory_tui.chunk where tenant = t and ws = w and path = p offset 0) c;
    end if;
end
$$;

create or replace function memory_tui.vectors(t text, w bigint, seqs bigint[]) returns setof memory_tui.vec
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    if memory_tui.reads(t, w) then
        return query select * from memory_tui.vec where tenant = t and ws = w and seq = any(seqs);
    end if;
end
$$;

-- The vectors in one space of texts with these hashes.
create or replace function memory_tui.known_vectors(t text, in_space text, hashes text[])
returns table (hash text, vec {vector}.vector)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare mine bigint[] := memory_tui.readable(t);
begin
    return query select distinct on (v.hash) v.hash, v.vec
    from memory_tui.vec v join memory_tui.workspace w using (tenant, ws)
    where v.tenant = t and v.ws = any(mine) and v.hash = any(hashes) and w.space = in_space;
end
$$;

-- What is wrong with the rows of a workspace, in words.
create or replace function memory_tui.unsound(t text, w bigint) returns setof text
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    if memory_tui.reads(t, w) then
        return query select 'passages of no note: ' || c.path
        from memory_tui.chunk c left join memory_tui.file f using (tenant, ws, path)
        where c.tenant = t and c.ws = w and coalesce(f.state, 'gone') = 'gone'
        union select 'a vector of no passage: ' || v.seq
        from memory_tui.vec v left join memory_tui.chunk c using (tenant, ws, seq)
        where v.tenant = t and v.ws = w and c.seq is null
        union select f.path || ': not all passages are there' from memory_tui.file f
        where f.tenant = t and f.ws = w and f.state <> 'gone' and f.chunks <> (
            select count(*) from memory_tui.chunk c where c.tenant = f.tenant and c.ws = f.ws and c.path = f.path);
    end if;
end
$$;

-- --- writing --------------------------------------------------------------------------------------------------------

-- The number of a workspace that the login may publish; raises otherwise, and says the same of one that is not there.
create or replace function memory_tui.published(t text, n text) returns bigint
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare found bigint; login name := session_user;
begin
    select w.ws into found from memory_tui.workspace w
        join memory_tui.member m on m.tenant = w.tenant and m.ws = w.ws and m.publishes
        where w.tenant = t and w.name = n and pg_has_role(login, to_regrole(quote_ident(m.who)), 'member') limit 1;
    if found is null then
        raise exception using errcode = 'MT004', message = format('%s has not joined the shared index.', n);
    end if;
    return found;
end
$$;

-- Let the workspace `n` be published by OWNER, the first part of its name.
create or replace function memory_tui.join_workspace(t text, n text) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare owner text := split_part(n, '/', 1); made bigint;
begin
    if n !~ '^[^/,[:cntrl:]]+/[^/,:[:cntrl:]]+$' or n <> btrim(n) or n like 'group:%' or pg_has_role(
        session_user, to_regrole(quote_ident(owner)), 'member') is not true then
        raise exception using errcode = 'MT003',
            message = format('%s is no OWNER/NAME where OWNER is %s or a role of that login.', n, session_user);
    end if;
    insert into memory_tui.workspace (tenant, name) values (t, n) on conflict do nothing returning ws into made;
    if made is not null then
        insert into memory_tui.member (tenant, ws, who, publishes) values (t, made, owner, true);
    end if;
    return memory_tui.published(t, n);
end
$$;

-- Let the login or role `reader` read the workspace `n`, or no longer.
create or replace function memory_tui.allow(t text, n text, reader text, reads boolean) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare w bigint := memory_tui.published(t, n);
begin
    if reads and to_regrole(quote_ident(reader)) is null then
        raise exception using errcode = 'MT003', message = format('there is no login or role %s.', reader);
    end if;
    delete from memory_tui.member m where m.tenant = t and m.ws = w and m.who = reader and not m.publishes;
    if reads then
        insert into memory_tui.member (tenant, ws, who) values (t, w, reader) on conflict do nothing;
    end if;
end
$$;

-- Begin to publish `state` as `by_whom`, unless another one was heard of within `silent` seconds. What was published by
-- another recipe goes. A new incarnation begins then, after a run that a crash of the server cut off, and where a backup
-- was restored: its `generation` is lower than the one that the publisher remembers of this incarnation.
create or replace function memory_tui.take(
    t text, n text, by_whom text, silent double precision, made_by text, vectors_of text, dimensions int,
    index_id text, known uuid, known_generation bigint, state text)
returns table (ws bigint, epoch bigint, incarnation uuid, generation bigint, index_state text, base bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare w bigint := memory_tui.published(t, n); has memory_tui.workspace; other boolean;
    at_now timestamptz := clock_timestamp();
begin
    select * into has from memory_tui.workspace s where s.tenant = t and s.ws = w for update;
    if has.publisher not in ('', by_whom) and at_now - has.heard < make_interval(secs => silent) then
        raise exception using errcode = 'MT002', message = format('%s did so %s s ago.', split_part(has.publisher, ' ', 1),
            ceil(extract(epoch from at_now - has.heard)));
    end if;
    other := has.recipe not in ('', made_by);
    if other then
        delete from memory_tui.vec v where v.tenant = t and v.ws = w;
        delete from memory_tui.chunk c where c.tenant = t and c.ws = w;
        delete from memory_tui.file f where f.tenant = t and f.ws = w;
    end if;
    if other or (has.incarnation = known and has.generation < known_generation) or (has.index_state = '' and not exists (
        select from memory_tui.since_crash s where s.tenant = t and s.ws = w)) then
        has.incarnation := gen_random_uuid();
        has.index_state := '';
    end if;
    if has.index_uuid <> index_id then
        has.index_state := '';
        select coalesce(max(c.seq), 0) into has.base from memory_tui.chunk c where c.tenant = t and c.ws = w;
    end if;
    insert into memory_tui.since_crash values (t, w) on conflict do nothing;
    -- Empty until it is published, so that a run that was cut off is known.
    update memory_tui.workspace s set publisher = by_whom, heard = at_now, epoch = s.epoch + 1,
        recipe = made_by, space = vectors_of, dims = dimensions, incarnation = has.incarnation, base = has.base,
        index_uuid = index_id, index_state = case has.index_state when state then state else '' end
        where s.tenant = t and s.ws = w;
    return query select w, has.epoch + 1, has.incarnation, has.generation, has.index_state, has.base;
end
$$;

-- Begin a change, which makes a generation, or none (`steps` 0); returns the workspace. Raises where the epoch has
-- passed. As it locks the row of the workspace, generations become visible in their order.
create or replace function memory_tui.advance(t text, n text, e bigint, steps int default 1) returns memory_tui.workspace
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare w bigint := memory_tui.published(t, n); now_at memory_tui.workspace; at_now timestamptz := clock_timestamp();
begin
    -- The nodes of Citus agree on each commit, and wait.
    if steps > 0 and current_setting('citus.version', true) is null then
        perform set_config('synchronous_commit', 'off', true);
    end if;
    update memory_tui.workspace s set generation = s.generation + steps, heard = at_now
        where s.tenant = t and s.ws = w and s.epoch = e returning * into now_at;
    if now_at.ws is null then
        raise exception using errcode = 'MT001', message = format('epoch %s has passed.', e);
    end if;
    return now_at;
end
$$;

create or replace function memory_tui.forget_chunks(t text, w bigint, p text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    delete from memory_tui.vec where tenant = t and ws = w and seq = any(array(
        select c.seq from memory_tui.chunk c where c.tenant = t and c.ws = w and c.path = p));
    delete from memory_tui.chunk where tenant = t and ws = w and path = p;
end
$$;

-- Put a note with its passages in the place of what was published of it.
create or replace function memory_tui.put_file(
    t text, n text, e bigint, note jsonb, seqs bigint[], ordinals int[], occurrences int[], starts int[], ends int[],
    ids text[], hashes text[], annotated text[], prefixes bytea[], texts bytea[],
    vec_seqs bigint[], places int[], vec_hashes text[], vecs {vector}.vector[])
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare now_at memory_tui.workspace := memory_tui.advance(t, n, e); w bigint := now_at.ws; p text := note ->> 'path';
begin
    perform memory_tui.forget_chunks(t, w, p);
    delete from memory_tui.file f where f.tenant = t and f.ws = w and f.path = p;
    insert into memory_tui.file select f.* from jsonb_populate_record(null::memory_tui.file,
        note || jsonb_build_object('tenant', t, 'ws', w, 'generation', now_at.generation)) f;
    insert into memory_tui.chunk
        select t, w, seq, p, ordinal, occurrence, first, last, id, hash, annotation, prefix, body
        from unnest(seqs, ordinals, occurrences, starts, ends, ids, hashes, annotated, prefixes, texts)
            as x(seq, ordinal, occurrence, first, last, id, hash, annotation, prefix, body);
    insert into memory_tui.vec select t, w, x.* from unnest(vec_seqs, places, vec_hashes, vecs) as x;
end
$$;

create or replace function memory_tui.drop_file(t text, n text, e bigint, p text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare now_at memory_tui.workspace := memory_tui.advance(t, n, e);
begin
    perform memory_tui.forget_chunks(t, now_at.ws, p);
    update memory_tui.file f set state = 'gone', hash = '', mark = '', detail = '', title = '', dated = '', size = 0,
        chunks = 0, first_seq = 0, generation = now_at.generation
        where f.tenant = t and f.ws = now_at.ws and f.path = p;
end
$$;

-- Say that what `state` stands for is published and, where something `changed`, tell who listens to look; returns the
-- generation.
create or replace function memory_tui.finish(t text, n text, e bigint, state text, changed boolean) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare now_at memory_tui.workspace := memory_tui.advance(t, n, e, 0);
begin
    update memory_tui.workspace s set index_state = state where s.tenant = t and s.ws = now_at.ws;
    if changed then
        perform pg_notify('memory_tui', '');
    end if;
    return now_at.generation;
end
$$;

-- Take everything of a workspace away, with who may read it.
create or replace function memory_tui.leave(t text, n text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare w bigint := memory_tui.published(t, n);
begin
    delete from memory_tui.workspace s where s.tenant = t and s.ws = w;
    perform pg_notify('memory_tui', '');
end
$$;

revoke all on all functions in schema memory_tui from public, memory_tui_member;
grant execute on function memory_tui.reads, memory_tui.workspaces, memory_tui.passages, memory_tui.files,
    memory_tui.chunks, memory_tui.vectors, memory_tui.known_vectors, memory_tui.unsound, memory_tui.join_workspace,
    memory_tui.allow, memory_tui.take, memory_tui.put_file, memory_tui.drop_file, memory_tui.finish, memory_tui.leave
    to memory_tui_member;

insert into memory_tui.about values (true, {version}) on conflict (only_row) do update set version = {version};
