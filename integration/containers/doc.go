// Package containers runs real servers in containers, and stages on them the
// faults that a service meets: a server that hangs, is restarted or dies, and a
// network that is gone.
//
// [Start] starts a server on a fixed loopback port, so that its DSN survives
// every fault. It needs a Docker daemon on this machine; [Available] says what
// is missing. Images are those of SQLBULKHEAD_POSTGRES_IMAGE,
// SQLBULKHEAD_MYSQL_IMAGE and SQLBULKHEAD_MARIADB_IMAGE, by default the official
// ones. Where no registry can be reached, make images builds local ones.
//
// Containers are removed when their test ends. They carry their process's name
// in a label: if it ends without that (an interrupt, a kill -9) its watchdog
// removes them, and so does whatever next starts a container here. Networks and
// volumes of their own they have none that would stay. testcontainers' reaper,
// which is an image of its own to be pulled, is switched off.
//
// # What each fault does to a client
//
// Measured with Docker 20.10, whose userland proxy carries the connections of a
// loopback port, on PostgreSQL and MariaDB; the tests say the same.
//
//   - Pause: connections stay open and go silent, new ones are accepted and get
//     no answer. Resume: what was sent meanwhile is executed.
//   - Stop: in good order. PostgreSQL is sent SIGINT, and tells its clients.
//   - Kill: connections end without a word. What was committed is there after
//     Start.
//   - Disconnect: the daemon ends the proxy, so connections are closed at once
//     and new ones are refused: to clients the network fails, it does not hang.
//     For a hang use Pause, or put internal/testserver's Proxy in front.
//
// The server does not see that end. Its sessions of before Disconnect stay, and
// count as connections, until TCP keepalive finds them dead: in a container of
// ours three seconds at most, two hours by default. A statement that runs goes
// on to its end.
package containers
