package fakedb

import (
	"context"
	sqldriver "database/sql/driver"
)

// Handler answers texts that the fake's language lacks, such as the set-up statements of a real dialect. It sees every
// text first, when it is run. (nil, nil) means that it has no answer. It may block, and change settings with
// [Server.Set]. Its Call has no N, Seen and At.
type Handler func(context.Context, Call) (*Answer, error)

// Answer is a handler's result set. With no columns it is the answer to a command without rows.
type Answer struct {
	Columns []string
	Rows    [][]sqldriver.Value
}

// Handle adds a handler. They are asked in the order in which they were added.
func (s *Server) Handle(h Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers = append(s.handlers, h)
}

// answer asks the handlers.
func (s *Server) answer(ctx context.Context, call Call) (*Answer, error) {
	s.mu.Lock()
	handlers := s.handlers
	s.mu.Unlock()
	for _, h := range handlers {
		if a, err := h(ctx, call); a != nil || err != nil {
			return a, err
		}
	}
	return nil, nil
}

// asksHandlers reports whether there are any, so that an unknown text is not yet an error when it is prepared.
func (s *Server) asksHandlers() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.handlers) > 0
}
