package mesh

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"holdfast/ports"
)

// Passwords are kept as PBKDF2-SHA256 hashes: `pbkdf2-sha256$ROUNDS$SALT$HASH`, salt and hash in base64.
const (
	scheme      = "pbkdf2-sha256"
	hashRounds  = 600_000 // of a new hash
	plainRounds = 100_000 // of a password that stands in the configuration as it is
	maxRounds   = 10_000_000
	saltBytes   = 16
)

// User may log in. Password is a text that HashPassword made, or the password itself.
type User struct {
	Name     string
	Password string
}

// HashPassword gives the text that stands for a password in a configuration.
func HashPassword(password string) string { return newHash(password, hashRounds).String() }

// hash is one password's.
type hash struct {
	rounds     int
	salt, text []byte
}

func newHash(password string, rounds int) hash {
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // never fails
	return hash{rounds, salt, derive(password, salt, rounds)}
}

func derive(password string, salt []byte, rounds int) []byte {
	key, err := pbkdf2.Key(sha256.New, password, salt, rounds, sha256.Size)
	if err != nil { // only for lengths that nobody gives
		panic(err)
	}
	return key
}

func (h hash) String() string {
	enc := base64.RawStdEncoding
	return fmt.Sprintf("%s$%d$%s$%s", scheme, h.rounds, enc.EncodeToString(h.salt), enc.EncodeToString(h.text))
}

func (h hash) fits(password string) bool {
	return subtle.ConstantTimeCompare(h.text, derive(password, h.salt, h.rounds)) == 1
}

// readHash reads a user's password, hashed or not.
func readHash(u User) (hash, error) {
	rest, hashed := strings.CutPrefix(u.Password, scheme+"$")
	if !hashed {
		if u.Password == "" || u.Name == "" {
			return hash{}, ports.InField(ports.Invalid, "user "+u.Name, "needs a name and a password")
		}
		return newHash(u.Password, plainRounds), nil
	}
	parts := strings.Split(rest, "$")
	odd := ports.InField(ports.Invalid, "user "+u.Name, "has a hash that cannot be read; make one with HashPassword")
	if len(parts) != 3 {
		return hash{}, odd
	}
	rounds, err := strconv.Atoi(parts[0])
	salt, saltErr := base64.RawStdEncoding.DecodeString(parts[1])
	text, textErr := base64.RawStdEncoding.DecodeString(parts[2])
	if err != nil || saltErr != nil || textErr != nil || rounds < 1 || rounds > maxRounds || len(text) != sha256.Size {
		return hash{}, odd
	}
	return hash{rounds, salt, text}, nil
}
