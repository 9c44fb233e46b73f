// Package schema is what ent's generator reads.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
)

// Employee has a boss, who is one, too: one table with something to join.
type Employee struct{ ent.Schema }

// Fields is the least that a test can do with.
func (Employee) Fields() []ent.Field {
	return []ent.Field{field.String("name").MaxLen(40).Unique()}
}

// Edges to the table itself.
func (Employee) Edges() []ent.Edge {
	return []ent.Edge{edge.To("reports", Employee.Type).From("boss").Unique()}
}
