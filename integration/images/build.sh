#!/usr/bin/env bash
# Builds images of PostgreSQL, MariaDB and PgBouncer from the distribution's own
# packages, for machines that reach no image registry. What is there already is
# kept. Needs root, apt, docker, and a Docker daemon.
#
#	sqlbulkhead/postgres:local  sqlbulkhead/mariadb:local  sqlbulkhead/pgbouncer:local
#
# apt resolves, downloads and verifies the packages, from wherever this machine
# has them from, into a tree of their own; they are unpacked and not configured.
# That takes a sixth of what debootstrap takes, and servers that are given their
# data directory and their settings need no more than their files.
set -euo pipefail
cd "$(dirname "$0")"

repository=sqlbulkhead
tree=
container=

missing() {
	local name
	for name in postgres mariadb pgbouncer; do
		docker image inspect "$repository/$name:local" >/dev/null 2>&1 || return 0
	done
	return 1
}

clean() {
	[[ -z $container ]] || docker rm -f "$container" >/dev/null
	[[ -z $tree ]] || rm -rf "$tree"
}

packages=(
	base-files bash coreutils dash grep hostname libc-bin mawk sed util-linux
	postgresql mariadb-server-core mariadb-client-core pgbouncer
)

download() {
	mkdir -p "$tree/debs/partial"
	: >"$tree/status" # nothing is installed yet
	fetch || { apt-get update >>"$tree/log" 2>&1 && fetch; } || {
		tail -5 "$tree/log" >&2
		echo "images: apt cannot get the packages" >&2
		return 1
	}
}

fetch() {
	apt-get -q -y -o Dir::State::status="$tree/status" -o Dir::Cache::archives="$tree/debs" \
		-o APT::Sandbox::User=root -o Dpkg::Use-Pty=0 --no-install-recommends \
		--download-only install "${packages[@]}" >>"$tree/log" 2>&1
}

# The directories of the root are links before the first package comes, as
# base-files would make them only when it is configured.
unpack() {
	local deb dir
	mkdir -p "$tree/root/usr/local/bin" "$tree/root/tmp"
	for dir in bin sbin lib lib64; do
		mkdir "$tree/root/usr/$dir"
		ln -s "usr/$dir" "$tree/root/$dir"
	done
	for deb in "$tree"/debs/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$tree/root" --keep-directory-symlink \
			--exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*'
	done
}

# What the packages' scripts would have made, as far as servers need it.
finish() {
	local root=$tree/root
	chmod 1777 "$root/tmp"
	[[ -e $root/bin/sh ]] || ln -s dash "$root/bin/sh"
	ln -sf mawk "$root/bin/awk"
	printf '%s\n' 'root:x:0:0::/root:/bin/bash' 'postgres:x:70:70::/var/lib/postgresql:/bin/bash' \
		'mysql:x:71:71::/var/lib/mysql:/bin/bash' 'nobody:x:65534:65534::/:/bin/bash' >"$root/etc/passwd"
	printf '%s\n' 'root:x:0:' 'postgres:x:70:' 'mysql:x:71:' 'nogroup:x:65534:' >"$root/etc/group"
	echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
	ln -sf ../usr/share/zoneinfo/UTC "$root/etc/localtime"
	install -m 755 postgres-entrypoint "$root/usr/local/bin/"
	install -m 755 mariadb-entrypoint "$root/usr/local/bin/"
	ln -s "$(cd "$root" && echo usr/lib/postgresql/*/bin)" "$root/pgbin"
	ldconfig -r "$root"
}

# name NAME SIGNAL CHANGE... gives the imported tree, one layer which all three
# share, a configuration of its own. SIGNAL is what docker stop sends.
name() {
	local change changes=() image=$repository/$1:local signal=$2
	shift 2
	for change; do changes+=(--change "$change"); done
	container=$(docker create --stop-signal "$signal" "$repository/packages:local" true)
	docker commit "${changes[@]}" "$container" "$image" >/dev/null
	docker rm "$container" >/dev/null
	container=
	echo "images: built $image"
}

if ! missing; then
	echo "images: all there"
	exit
fi
trap clean EXIT
tree=$(mktemp -d "${TMPDIR:-/var/tmp}/sqlbulkhead-images-XXXXXX")
download
unpack
finish
tar -c -C "$tree/root" . | docker import - "$repository/packages:local" >/dev/null
name postgres SIGINT 'ENTRYPOINT ["postgres-entrypoint"]' 'CMD ["postgres"]' 'EXPOSE 5432' \
	'ENV PATH=/usr/local/bin:/usr/bin:/usr/sbin:/pgbin LANG=C.UTF-8 PGDATA=/var/lib/postgresql/data'
name mariadb SIGTERM 'ENTRYPOINT ["mariadb-entrypoint"]' 'CMD ["mariadbd"]' 'EXPOSE 3306' 'ENV LANG=C.UTF-8'
name pgbouncer SIGTERM 'CMD ["pgbouncer", "/etc/pgbouncer/pgbouncer.ini"]' 'EXPOSE 6432'
