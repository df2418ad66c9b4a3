package mesh

// User may log in. Password is the text that HashPassword made, or the password itself.
type User struct {
	Name     string
	Password string
}
