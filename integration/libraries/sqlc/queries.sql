-- name: CreateAuthor :one
INSERT INTO author (id, name, tags, born) VALUES ($1, $2, $3, $4) RETURNING *;

-- name: CreateAuthors :execrows
INSERT INTO author (id, name) SELECT unnest(@ids::bigint[]), unnest(@names::text[]);

-- name: AuthorsTagged :many
SELECT id, name, tags, current_setting('application_name')::text AS here FROM author WHERE tags && @tags::text[] ORDER BY id;

-- name: AuthorsByID :many
SELECT * FROM author WHERE id = ANY(@ids::bigint[]) ORDER BY id;

-- name: RenameAuthor :execrows
UPDATE author SET name = $2 WHERE id = $1;

-- name: DeleteAuthor :exec
DELETE FROM author WHERE id = $1;

-- name: Here :one
SELECT current_setting('application_name')::text;
