// Command host is the binary holdfast: the host process and the commands that talk to a running one.
//
//	main.go        the command tree and what every command runs with
//	COMMAND.go     one file for each command
//
// The exit codes are those of internal/exitcode: 0 ok, 1 failed or differences found, 2 usage or configuration,
// 3 environment.
package main
