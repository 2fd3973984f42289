-- The tables of the journal in the state database, and its longer questions to them. A comment with a colon names the
-- statements below it; `notes/journal.py` says what the tables hold.

-- tables: made where they are not there
CREATE TABLE IF NOT EXISTS note_change (
  scope TEXT NOT NULL, id INTEGER NOT NULL, at REAL NOT NULL, state TEXT NOT NULL, kind TEXT NOT NULL,
  title TEXT NOT NULL, undoes INTEGER NOT NULL, redoes INTEGER NOT NULL, reason TEXT NOT NULL, more TEXT NOT NULL,
  PRIMARY KEY (scope, id)
) STRICT;
CREATE INDEX IF NOT EXISTS note_change_begun ON note_change (scope) WHERE state = 'intent';
CREATE TABLE IF NOT EXISTS note_scope (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, last INTEGER NOT NULL DEFAULT 0, began INTEGER, viewed INTEGER,
  pruned REAL
) STRICT;
CREATE TABLE IF NOT EXISTS note_path (
  id INTEGER PRIMARY KEY, scope INTEGER NOT NULL, path TEXT NOT NULL, blob INTEGER,
  size INTEGER, mtime_ns INTEGER, ctime_ns INTEGER, device INTEGER, UNIQUE (scope, path)
) STRICT;
CREATE TABLE IF NOT EXISTS note_edit (
  scope INTEGER NOT NULL, id INTEGER NOT NULL, place INTEGER NOT NULL, path INTEGER NOT NULL, at REAL NOT NULL,
  before INTEGER, after INTEGER, plus INTEGER NOT NULL, minus INTEGER NOT NULL,
  mode INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, author INTEGER,
  PRIMARY KEY (scope, id, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS note_start (scope INTEGER PRIMARY KEY, at REAL NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS note_author (
  id INTEGER PRIMARY KEY, host TEXT NOT NULL, session TEXT NOT NULL, rule TEXT NOT NULL, UNIQUE (host, session, rule)
) STRICT;
CREATE TABLE IF NOT EXISTS note_blob (
  id INTEGER PRIMARY KEY, hash INTEGER NOT NULL, base INTEGER, data BLOB NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS note_blob_hash ON note_blob (hash);

-- edits: the notes in changes between two numbers (?2, ?3), with who made them; {more} is a further condition
SELECT e.id, e.place, e.at, p.path, e.before, e.after, e.plus, e.minus,
  coalesce(c.kind, 'others'), coalesce(c.title, ''), a.host, a.session, a.rule
FROM note_scope AS s CROSS JOIN note_edit AS e ON e.scope = s.id JOIN note_path AS p ON p.id = e.path
LEFT JOIN note_change AS c ON c.scope = s.name AND c.id = e.id LEFT JOIN note_author AS a ON a.id = e.author
WHERE s.name = ?1 AND coalesce(c.state, 'done') = 'done' AND e.id > ?2 AND e.id < ?3 {more}
ORDER BY e.id {order}, e.place LIMIT ?4

-- entries: the changes of this program after a number, once for each of their notes
SELECT c.id, c.at, state, kind, title, undoes, redoes, more, reason, p.path, before, after, mode, e.mtime_ns
FROM note_change AS c LEFT JOIN note_scope AS s ON s.name = c.scope
LEFT JOIN note_edit AS e ON e.scope = s.id AND e.id = c.id LEFT JOIN note_path AS p ON p.id = e.path
WHERE c.scope = ? AND c.id > ? {more} ORDER BY c.id, place

-- depth: on how many texts a text rests, itself included, down to a whole one
WITH RECURSIVE chain (id, step) AS (
  SELECT ?, 0 UNION ALL SELECT base, step + 1 FROM chain JOIN note_blob USING (id) WHERE base NOT NULL
) SELECT count(*) FROM chain

-- unused_texts: deletes the texts that neither a change nor a note names, nor one of those rests on
WITH RECURSIVE needed (id) AS (
  SELECT before FROM note_edit UNION SELECT after FROM note_edit UNION SELECT blob FROM note_path
  UNION SELECT base FROM needed JOIN note_blob USING (id)
)
DELETE FROM note_blob WHERE id NOT IN (SELECT id FROM needed WHERE id NOT NULL)

-- too_much: the newest change that is over a size, counted from the newest one; each text counts once, and no note's last one
SELECT coalesce(max(id), 0) FROM (
  SELECT id, sum(sum(size)) OVER (ORDER BY id DESC) AS total, max(id) OVER () AS last FROM (
    SELECT max(e.id) AS id, length(data) AS size FROM note_edit AS e JOIN note_blob AS b ON b.id IN (before, after)
    WHERE e.scope = ?1 AND b.id NOT IN (SELECT blob FROM note_path WHERE scope = ?1 AND blob NOT NULL) GROUP BY b.id
  ) GROUP BY id
) WHERE total > ?2 AND id < last
