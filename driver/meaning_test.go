package driver

import "testing"

func TestTextsAfterWhichNamesMeanSomethingElseAreRecognised(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]bool{
		"":                                       true,
		"SELECT 1":                               true,
		"(SELECT v FROM t) UNION SELECT 1;":      true,
		"insert into used (setting) values (?)":  true,
		"WITH x AS (SELECT 1) SELECT * FROM x":   true,
		"select a_set, config_b from set_confi":  true,
		"COMMIT":                                 true,
		"USE shop":                               false,
		"  -- a comment\n/* and */ use shop":     false,
		"SET search_path TO a":                   false,
		"Reset ALL":                              false,
		"DISCARD ALL":                            false,
		"DEALLOCATE ALL":                         false,
		"CREATE TEMP TABLE t (n int)":            false,
		"drop table t":                           false,
		"ALTER TABLE t ADD n int":                false,
		"CALL enter(?)":                          false,
		"DO $$ BEGIN END $$":                     false,
		"PRAGMA foreign_keys = 1":                false,
		"SELECT Set_Config('search_path', $1, f": false,
		"SELECT 1; USE shop":                     false,
		"/*!50000 USE shop */":                   false,
		"SELECT 1 /*M! , 2 */":                   false,
	} {
		if got := keepsMeaning(query); got != want {
			t.Errorf("%s: %v", query, got)
		}
	}
}
