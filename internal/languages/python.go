package languages

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	"holdfast/internal/debian"
)

// pythonNeeds is what an interpreter must be able to do.
const pythonNeeds = "import grpc; from google.protobuf import descriptor_pool"

// findPython takes an interpreter that has everything, or unpacks Debian's packages.
func findPython(ctx context.Context, tools string) (Tool, error) {
	dir := filepath.Join(tools, "debian-python3-grpcio")
	wrapped := filepath.Join(dir, "bin", "python3")
	for _, known := range []string{wrapped, "/usr/bin/python3", inPath("python3")} {
		if known == "" {
			continue
		}
		if _, err := debian.Run(ctx, tools, known, "-c", pythonNeeds); err == nil {
			return Tool{Command: known}, nil
		}
	}
	root, err := debian.Unpack(ctx, dir, "python3-grpcio", "python3-protobuf")
	if err != nil {
		return Tool{}, err
	}
	interpreter := "/usr/bin/python3" // Debian's own, which the packages are built for
	if _, err := os.Stat(interpreter); err != nil {
		interpreter = filepath.Join(root, "usr/bin/python3")
	}
	err = wrap(wrapped, libraries(root)+"export PYTHONPATH='"+filepath.Join(root, "usr/lib/python3/dist-packages")+"'\n"+
		"exec "+interpreter+" \"$@\"")
	if err != nil {
		return Tool{}, err
	}
	_, err = debian.Run(ctx, tools, wrapped, "-c", pythonNeeds)
	return Tool{Command: wrapped}, err
}

func inPath(name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}
