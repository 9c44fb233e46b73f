# What each target is for: make help. TESTFLAGS and BENCHFLAGS add to the
# arguments of go test, as in make test TESTFLAGS='-run Restart -count 10'.

GO ?= go

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "%-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## show one shared pool beside partitions, on an embedded SQLite file
	$(GO) run ./cmd/sqlbulkhead demo

.PHONY: test
test: bin/testsum ## run the tests of all modules, with the race detector
	./bin/testsum -race -timeout 20m $(TESTFLAGS) work

.PHONY: integration
integration: bin/testsum ## stage bad days on real servers, and write integration/report/index.html
	rm -rf integration/report
	cd integration && SQLBULKHEAD_REPORT_DIR=$(CURDIR)/integration/report ../bin/testsum -p 1 -count 1 -timeout 30m $(TESTFLAGS) ./...

.PHONY: bench
bench: ## run the benchmarks, each beside its twin on plain database/sql, and check the bounds
	$(GO) run ./tools/benchdiff $(BENCHFLAGS) ./partition

.PHONY: lint
lint: ## check the format, go vet and staticcheck, in all modules
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt would change:"; echo "$$unformatted"; exit 1; }
	$(GO) vet work
	$(GO) tool staticcheck work

bin/testsum: $(wildcard tools/testsum/*.go)
	$(GO) build -buildvcs=false -o $@ ./tools/testsum
