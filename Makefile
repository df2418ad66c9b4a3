# The help of each target is the comment behind it.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# Version control is asked here, once, not by every link: its stamp would make each commit a new binary.
BUILD   := CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.linked=$(VERSION)"
# Each backend is a folder with a main.go; the SDK, the protocol, the suite and the templates are none.
PLUGINS := $(filter-out sdk proto conformance templates,$(patsubst plugins/%/main.go,%,$(wildcard plugins/*/main.go)))
GO_DIRS := $(wildcard adapters cmd core internal plugins ports)

# Tools are built from source at these versions, each into a folder of its version, so that a new one is built when the
# number changes. From an empty cache on two cores: golangci-lint 82 s, buf 102 s, the two generators 14 s each.
GOLANGCI  := .tools/golangci-lint-v2.15.0/golangci-lint
BUF       := .tools/buf-v1.75.0/buf
GEN_GO    := .tools/protoc-gen-go-v1.36.12/protoc-gen-go
GEN_GRPC  := .tools/protoc-gen-go-grpc-v1.6.2/protoc-gen-go-grpc
GENERATED := .tools/generated
GENERATE   = cd plugins/proto && PATH="$(abspath $(dir $(GEN_GO))):$(abspath $(dir $(GEN_GRPC))):$$PATH" "$(abspath $(BUF))" generate

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## build everything and serve with the defaults: SQLite in ./data, on 127.0.0.1:8420
	bin/holdfast serve

.PHONY: build
build: ## build bin/holdfast and bin/plugins/holdfast-backend-*
	@mkdir -p bin/plugins
	$(BUILD) -o bin/holdfast ./cmd/host
	$(foreach p,$(PLUGINS),$(BUILD) -o bin/plugins/holdfast-backend-$(p) ./plugins/$(p) &&) true

.PHONY: test
test: build ## run every test with the race detector (needs gcc)
	go test -race -timeout 30m ./...

.PHONY: soak
soak: build ## run the long tests too
	HOLDFAST_SOAK=1 go test -timeout 4h ./...

.PHONY: bench
bench: build ## measure holdfast beside what it is compared with; compare ratios within one run, never runs
	go test -run '^$$' -bench . -benchtime 1x -timeout 1h ./internal/bench

.PHONY: verify
verify: format vet lint imports generated tidy ## run every check that is not a test

.PHONY: format
format: ## check that gofmt would change nothing
	@unformatted=$$(gofmt -l $(GO_DIRS)); if [ -n "$$unformatted" ]; then echo "not formatted (run gofmt -w):"; echo "$$unformatted"; exit 1; fi

.PHONY: vet
vet: ## run go vet
	go vet ./...

.PHONY: lint
lint: $(GOLANGCI) ## run the linters of .golangci.yml
	$(GOLANGCI) run ./...

.PHONY: imports
imports: ## check who imports whom
	go test ./internal/imports

.PHONY: generated
generated: $(BUF) $(GEN_GO) $(GEN_GRPC) ## check that the generated code is in step with the protocol
	@rm -rf $(GENERATED)
	cd plugins/proto && "$(abspath $(BUF))" lint
	$(GENERATE) --output "$(abspath $(GENERATED))"
	@diff -r $(GENERATED)/backendv1 plugins/proto/backendv1 && diff -r $(GENERATED)/meshv1 plugins/proto/meshv1 || { echo "generated code is out of step: run make generate"; exit 1; }

.PHONY: tidy
tidy: ## check that go.mod and go.sum are what go mod tidy makes
	go mod tidy -diff

.PHONY: generate
generate: $(BUF) $(GEN_GO) $(GEN_GRPC) ## generate the code of the protocol
	$(GENERATE)

.PHONY: tools
tools: $(GOLANGCI) $(BUF) $(GEN_GO) $(GEN_GRPC) ## build the tools that the other targets need

$(GOLANGCI): PACKAGE := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
$(BUF):      PACKAGE := github.com/bufbuild/buf/cmd/buf@v1.75.0
$(GEN_GO):   PACKAGE := google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
$(GEN_GRPC): PACKAGE := google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
$(GOLANGCI) $(BUF) $(GEN_GO) $(GEN_GRPC):
	GOBIN="$(abspath $(@D))" go install $(PACKAGE)

.PHONY: clean
clean: ## remove what was built; the data directory stays
	rm -rf bin .tools
