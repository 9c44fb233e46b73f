CREATE TABLE author (
    id bigint PRIMARY KEY,
    name text NOT NULL UNIQUE,
    tags text[] NOT NULL DEFAULT '{}',
    born date
);
