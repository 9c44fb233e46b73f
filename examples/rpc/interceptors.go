package main

import (
	"context"
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// unary tags calls by their method. Metadata, which the client writes, is not looked at.
func unary(byMethod map[string]workload.Name) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		reply, err := next(tagged(ctx, byMethod[info.FullMethod]), req)
		return reply, statusOf(err)
	}
}

// stream does the same for streams.
func stream(byMethod map[string]workload.Name) grpc.StreamServerInterceptor {
	return func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		return statusOf(next(srv, &taggedStream{s, tagged(s.Context(), byMethod[info.FullMethod])}))
	}
}

func tagged(ctx context.Context, name workload.Name) context.Context {
	if name == "" {
		return ctx
	}
	return workload.With(ctx, name)
}

// taggedStream is a stream under another context.
type taggedStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *taggedStream) Context() context.Context { return s.ctx }

// statusOf says what an error of the database means to a client. Errors that are a status already, and all that have
// nothing to do with a pool, stay what they are.
func statusOf(err error) error {
	var refused *partition.AcquireError
	switch {
	case errors.Is(err, partition.ErrRejected) && errors.As(err, &refused):
		return rejection(refused)
	case errors.As(err, &refused): // the caller's own context ended while it waited
		return status.FromContextError(refused.Unwrap()).Err()
	case errors.Is(err, stmttimeout.ErrExceeded): // it ran, and may have taken effect
		return status.Error(codes.DeadlineExceeded, "the statement took too long")
	}
	return err
}

// rejection tells the client when to come back. A pool that is full is RESOURCE_EXHAUSTED, and not UNAVAILABLE: that
// has most clients try again at once, on this server or the next, which has the same database behind it. A pool that an
// operator has paused is UNAVAILABLE. Nothing was executed in either case, unless the method did so before.
func rejection(refused *partition.AcquireError) error {
	code := codes.ResourceExhausted
	if errors.Is(refused, partition.ErrPaused) {
		code = codes.Unavailable
	}
	s := status.New(code, "busy, try again later")
	detailed, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(refused.RetryAfter())})
	if err != nil {
		return s.Err()
	}
	return detailed.Err()
}
