package main

import (
	"context"
	"database/sql"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// shop is the service. It returns errors as database/sql does: what they mean to a client the interceptors say.
type shop struct{ db *sql.DB }

// Login returns the user's name if there is such a user.
func (s *shop) Login(ctx context.Context, user *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
	var name string
	err := s.db.QueryRowContext(ctx, "SELECT name FROM users WHERE name = ?", user.GetValue()).Scan(&name)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, status.Error(codes.Unauthenticated, "no such user")
	}
	return wrapperspb.String(name), err
}

// Report streams the users, and holds a connection as long as the client reads.
func (s *shop) Report(_ *emptypb.Empty, out grpc.ServerStreamingServer[wrapperspb.StringValue]) error {
	rows, err := s.db.QueryContext(out.Context(), "SELECT name FROM users ORDER BY name")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		if err := out.Send(wrapperspb.String(name)); err != nil {
			return err
		}
	}
	return rows.Err()
}

// shopService is what protoc would generate.
var shopService = grpc.ServiceDesc{
	ServiceName: "shop.Shop",
	HandlerType: (*any)(nil),
	Methods:     []grpc.MethodDesc{{MethodName: "Login", Handler: handleLogin}},
	Streams:     []grpc.StreamDesc{{StreamName: "Report", Handler: handleReport, ServerStreams: true}},
}

func handleLogin(s any, ctx context.Context, decode func(any) error, through grpc.UnaryServerInterceptor) (any, error) {
	in := new(wrapperspb.StringValue)
	if err := decode(in); err != nil {
		return nil, err
	}
	call := func(ctx context.Context, in any) (any, error) {
		return s.(*shop).Login(ctx, in.(*wrapperspb.StringValue))
	}
	return through(ctx, in, &grpc.UnaryServerInfo{Server: s, FullMethod: "/shop.Shop/Login"}, call)
}

func handleReport(s any, stream grpc.ServerStream) error {
	in := new(emptypb.Empty)
	if err := stream.RecvMsg(in); err != nil {
		return err
	}
	return s.(*shop).Report(in, &grpc.GenericServerStream[emptypb.Empty, wrapperspb.StringValue]{ServerStream: stream})
}
