package wire

// What host and plugin agree on before the first call. The contract in plugins/proto states the same for other languages.
const (
	CookieKey       = "HOLDFAST_PLUGIN"
	CookieValue     = "5d1c9b6e0f7a4c2d8e3b1a9f6c7d0e24"
	ProtocolVersion = 1         // of the service; the host offers every version that it speaks
	PluginName      = "backend" // the one thing that go-plugin is asked to dispense

	// LogLevelKey is the environment variable with the least level of the log lines that the host shows.
	LogLevelKey = "HOLDFAST_LOG_LEVEL"
)
