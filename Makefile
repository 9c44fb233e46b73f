# What each target is for: make help. TESTFLAGS and BENCHFLAGS add to the
# arguments of go test, as in make test TESTFLAGS='-run Restart -count 10'.

GO ?= go

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## show one shared pool beside partitions, on an embedded SQLite file
	$(GO) run ./cmd/sqlbulkhead demo

.PHONY: test
test: bin/testsum ## run the tests of all modules, with the race detector
	./bin/testsum -race -timeout 20m $(TESTFLAGS) work

.PHONY: conformance
conformance: ## run every driver plain and partitioned, print what differs, by driver, and run the libraries
	cd conformance && $(GO) test -tags gomysqlserver -count=1 -timeout 20m $(TESTFLAGS)
	cd integration/libraries && $(GO) test -count=1 -timeout 20m $(TESTFLAGS)

PACKAGES = ./...

.PHONY: integration
integration: bin/testsum ## stage bad days on real servers, and write integration/report/index.html
	rm -rf integration/report
	cd integration && SQLBULKHEAD_REPORT_DIR=$(CURDIR)/integration/report ../bin/testsum -p 1 -count 1 -timeout 30m $(TESTFLAGS) $(PACKAGES)

.PHONY: bench
bench: ## run the benchmarks, each beside its twin on plain database/sql, and check the bounds
	$(GO) run ./tools/benchdiff $(BENCHFLAGS) ./partition ./metrics/prometheus ./metrics/otel

.PHONY: lint
lint: ## check the format, go vet and staticcheck, in all modules
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt would change:"; echo "$$unformatted"; exit 1; }
	$(GO) vet work
	$(GO) tool staticcheck work

.PHONY: images
images: ## build local images of PostgreSQL, MariaDB and PgBouncer, where no image registry can be reached
	@./integration/images/build.sh

COMPOSE ?= $(shell docker compose version >/dev/null 2>&1 && echo docker compose || echo docker-compose)

.PHONY: up
up: ## start the servers of docker-compose.yml
	$(COMPOSE) up --detach

.PHONY: down
down: ## stop them, and drop their data
	$(COMPOSE) down --volumes

.PHONY: newest-postgres
newest-postgres: ## fetch the newest PostgreSQL and print its directory, for SQLBULKHEAD_POSTGRES_BIN
	@./integration/images/newest-postgres.sh

bin/testsum: $(wildcard tools/testsum/*.go)
	$(GO) build -buildvcs=false -o $@ ./tools/testsum
