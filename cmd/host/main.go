package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/hashicorp/go-hclog"

	"holdfast/adapters/process"
	"holdfast/internal/config"
	"holdfast/internal/exitcode"
	"holdfast/ports"
)

// commands is the command tree: one line for each command, whose type stands in a file of its own.
type commands struct {
	globals

	Serve     serveCommand     `cmd:"" help:"Run the host."`
	Ingest    ingestCommand    `cmd:"" help:"Send files of actions to a running host."`
	Export    exportCommand    `cmd:"" help:"Write the whole history as actions."`
	Status    statusCommand    `cmd:"" help:"Tell how the host is, what waits, and what to do."`
	Backends  backendsCommand  `cmd:"" help:"Tell how each backend is."`
	Items     itemsCommand     `cmd:"" help:"List work items."`
	Item      itemCommand      `cmd:"" help:"Show a work item."`
	Events    eventsCommand    `cmd:"" help:"List the events of a work item."`
	Attempts  attemptsCommand  `cmd:"" help:"List the attempts of a work item."`
	Manifests manifestsCommand `cmd:"" help:"List operation manifests."`
	Manifest  manifestCommand  `cmd:"" help:"Show an operation manifest."`
	Assign    assignCommand    `cmd:"" help:"Say which databeacon keeps history."`
	Unsettled unsettledCommand `cmd:"" help:"Show, retry or discard what a backend did not take."`
	Verify    verifyCommand    `cmd:"" help:"Compare two backends."`
	Resync    resyncCommand    `cmd:"" help:"Copy everything to a backend again, or remove what only it has."`
	Copy      copyCommand      `cmd:"" help:"Bring everything that one backend has to another."`
	Adopt     adoptCommand     `cmd:"" help:"Take what only a backend has into the local store."`
	Local     localCommand     `cmd:"" help:"Decide about the local store."`
	Prune     pruneCommand     `cmd:"" help:"Remove finished history."`
	Doctor    doctorCommand    `cmd:"" help:"Look for everything that may be wrong, and say what to do."`
	Plugin    pluginCommand    `cmd:"" help:"List, explain, check, begin and pin plugins."`
	Config    configCommand    `cmd:"" help:"Check, show or begin a configuration."`
	Version   versionCommand   `cmd:"" help:"Print the version."`
	Help      helpCommand      `cmd:"" help:"Print the help of a command."`
}

// globals are the flags that every command takes.
type globals struct {
	ConfigFile string `name:"config" placeholder:"FILE" env:"HOLDFAST_CONFIG" help:"Configuration, HCL or JSON (by its ending .json). Without it holdfast.hcl in the working directory, if it is there, else the defaults."`
	Server     string `placeholder:"URL" env:"HOLDFAST_SERVER" help:"The running host to talk to. Without it the configured listen address."`
	Token      string `placeholder:"TEXT" env:"HOLDFAST_TOKEN" help:"The secret to call the host with; better given in the environment, since everybody sees command lines."`
	CA         string `name:"ca" placeholder:"FILE" env:"HOLDFAST_CA" help:"Certificates of authorities to trust beside the system's, for a host that is reached by https. The certificate that the configuration names is trusted without."`
	LogLevel   string `placeholder:"LEVEL" help:"What is logged: trace, debug, info, warn or error and above ($$HOLDFAST_LOG_LEVEL)."`
}

const about = `One front door for the history of a work queue: work items, their events and attempts, and operation manifests are made durable at once, kept in the backend of your choice, and copied to every other one.`

// describeFunc starts a plugin only to ask what it is; see process.Describe.
type describeFunc func(ctx context.Context, spec process.Spec) (ports.Description, error)

// program is the process from outside, so that tests can run it.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	describe       describeFunc
	launch         launchFunc
}

// invocation is what a command runs with: kong hands it to the command's Run.
type invocation struct {
	program
	globals
	ctx context.Context // ends at the first interrupt
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	p := program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, describe: process.Describe, launch: alone}
	code := p.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// run is the whole life of the process; it gives the exit code.
func (p program) run(ctx context.Context, args []string) int {
	err := p.execute(ctx, args)
	if err != nil {
		fmt.Fprintf(p.stderr, "holdfast: %v\n", err)
	}
	return exitcode.Of(err)
}

func (p program) execute(ctx context.Context, args []string) error {
	var tree commands
	helped := false
	parser, err := kong.New(&tree,
		kong.Name("holdfast"),
		kong.Description(about),
		kong.Writers(p.stdout, p.stderr),
		kong.Exit(func(int) { helped = true }), // kong exits only after it printed help
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: 100}),
	)
	if err != nil {
		return fmt.Errorf("command tree: %w", err)
	}
	command, err := parser.Parse(helpLast(args))
	switch {
	case helped:
		return nil
	case err != nil:
		return exitcode.With(exitcode.Usage, fmt.Errorf("%w; see holdfast help", err))
	}
	return command.Run(&invocation{program: p, globals: tree.globals, ctx: ctx})
}

// helpCommand only stands in the tree: helpLast turns it into the flag.
type helpCommand struct {
	Command []string `arg:"" optional:"" help:"The command."`
}

// helpLast reads "help config check" as "config check --help".
func helpLast(args []string) []string {
	if len(args) == 0 || args[0] != "help" {
		return args
	}
	return append(args[1:len(args):len(args)], "--help")
}

// load reads the configuration with the flags of a command over it, by the names of the settings.
func (in *invocation) load(flags map[string]string) (*config.Config, error) {
	all := map[string]string{"log_level": in.LogLevel}
	maps.Copy(all, flags)
	cfg, diags := config.Load(config.Input{File: in.ConfigFile, Flags: all})
	return cfg, cfg.Err(diags)
}

// server gives the URL of the host to talk to, and the configuration where it is the one that is configured there.
func (in *invocation) server() (string, *config.Config, error) {
	if in.Server != "" {
		return in.Server, nil, nil
	}
	cfg, err := in.load(nil)
	if err != nil {
		return "", nil, err
	}
	return cfg.URL(), cfg, nil
}

// quiet is the logger of a command that only asks plugins what they are: what they say then stands in the error, if there is
// one. Who wants to see it all the same gives --log-level.
func (in *invocation) quiet(cfg *config.Config) hclog.Logger {
	if in.LogLevel == "" {
		return hclog.NewNullLogger()
	}
	return in.logger(cfg)
}

// logger logs to standard error as the configuration says.
func (in *invocation) logger(cfg *config.Config) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{
		Name: "holdfast", Output: in.stderr, Level: hclog.LevelFromString(cfg.LogLevel), JSONFormat: cfg.LogJSON,
	})
}
