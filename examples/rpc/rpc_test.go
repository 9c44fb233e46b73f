package main

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// rig is a server, its pools and a client.
type rig struct {
	*testing.T
	db     *sql.DB
	client *grpc.ClientConn
}

func setup(t *testing.T) *rig {
	t.Helper()
	patient := partition.PoolConfig{AcquireTimeout: 20 * time.Second, MaxWaiting: partition.NoQueue}
	db, err := openShop(t.Context(), filepath.Join(t.TempDir(), "shop"),
		partition.WithLogger(slog.New(slog.DiscardHandler)),
		partition.WithPool(workload.OLTP, patient), partition.WithPool(workload.Reporting, patient))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	listener := bufconn.Listen(1 << 16)
	server := newServer(db)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	client, err := grpc.NewClient("passthrough:shop",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return &rig{t, db, client}
}

func (r *rig) login(ctx context.Context, user string) error {
	return r.client.Invoke(ctx, "/shop.Shop/Login", wrapperspb.String(user), new(wrapperspb.StringValue))
}

// report reads the stream to its end.
func (r *rig) report() (names []string, err error) {
	s, err := r.client.NewStream(r.Context(), &shopService.Streams[0], "/shop.Shop/Report")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.SendMsg(new(emptypb.Empty)), s.CloseSend()); err != nil {
		return nil, err
	}
	for {
		var name wrapperspb.StringValue
		if err := s.RecvMsg(&name); errors.Is(err, io.EOF) {
			return names, nil
		} else if err != nil {
			return names, err
		}
		names = append(names, name.GetValue())
	}
}

func (r *rig) pool(name workload.Name) *partition.Pool {
	r.Helper()
	reg, _ := partition.RegistryOf(r.db)
	pool, ok := reg.Pool(name)
	if !ok {
		r.Fatalf("no pool %q", name)
	}
	return pool
}

// fill takes every connection of a pool.
func (r *rig) fill(name workload.Name) {
	r.Helper()
	for range r.pool(name).Stats().MaxOpenConns {
		conn, err := r.db.Conn(workload.With(r.Context(), name))
		if err != nil {
			r.Fatal(err)
		}
		r.Cleanup(func() { conn.Close() })
	}
}

// mustAskToWait checks the code of a rejection, and that it says when to come back.
func mustAskToWait(t *testing.T, err error, code codes.Code) {
	t.Helper()
	s := status.Convert(err)
	if s.Code() != code {
		t.Fatalf("got %v, want %v", err, code)
	}
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok && info.GetRetryDelay().AsDuration() > 0 {
			return
		}
	}
	t.Errorf("no RetryInfo in %v", s.Details())
}

func TestMethodsRunInTheirPools(t *testing.T) {
	t.Parallel()
	r := setup(t)
	if err := r.login(t.Context(), "ada"); err != nil {
		t.Fatal(err)
	}
	if names, err := r.report(); err != nil || len(names) != 2 {
		t.Fatalf("%v, %v", names, err)
	}
	for _, name := range []workload.Name{workload.OLTP, workload.Reporting} {
		if n := r.pool(name).Stats().Acquired; n != 1 {
			t.Errorf("%s: %d calls", name, n)
		}
	}
}

func TestFullPoolIsResourceExhaustedWithRetryInfoWhileOthersAreServed(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.fill(workload.Reporting)
	_, err := r.report()
	mustAskToWait(t, err, codes.ResourceExhausted)
	if err := r.login(t.Context(), "ada"); err != nil {
		t.Error(err)
	}
	r.fill(workload.OLTP)
	mustAskToWait(t, r.login(t.Context(), "ada"), codes.ResourceExhausted)
}

func TestPausedPoolIsUnavailableWithRetryInfo(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.pool(workload.OLTP).Pause()
	mustAskToWait(t, r.login(t.Context(), "ada"), codes.Unavailable)
}

func TestMetadataOfTheClientChoosesNoPool(t *testing.T) {
	t.Parallel()
	r := setup(t)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "workload", "reporting", "x-workload", "reporting")
	if err := r.login(ctx, "ada"); err != nil {
		t.Fatal(err)
	}
	if n := r.pool(workload.Reporting).Stats().Acquired; n != 0 {
		t.Errorf("%d calls ran in reporting", n)
	}
}

func TestStatusOfOtherErrors(t *testing.T) {
	t.Parallel()
	own := status.Error(codes.Unauthenticated, "no such user")
	syntax := errors.New("syntax error")
	for _, c := range []struct {
		err  error
		want codes.Code
		same bool
	}{
		{nil, codes.OK, true},
		{own, codes.Unauthenticated, true},
		{syntax, codes.Unknown, true},
		{partition.ErrUnknownWorkload, codes.Unknown, true},
		{&stmttimeout.Error{Limit: time.Second}, codes.DeadlineExceeded, false},
	} {
		got := statusOf(c.err)
		if status.Code(got) != c.want || c.same && got != c.err {
			t.Errorf("%v became %v", c.err, got)
		}
	}
	if err := setup(t).login(t.Context(), "mallory"); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a stranger got %v", err)
	}
}

func TestCallerThatGaveUpInTheQueueIsNoRejection(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.fill(workload.Admin)
	ctx, cancel := context.WithCancel(workload.With(t.Context(), workload.Admin))
	go func() {
		for r.pool(workload.Admin).Stats().Waiting == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	_, err := r.db.ExecContext(ctx, "SELECT 1")
	if code := status.Code(statusOf(err)); code != codes.Canceled {
		t.Errorf("%v became %v", err, code)
	}
}
