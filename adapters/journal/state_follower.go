package journal

import "holdfast/ports"

var errNotYet = ports.Errorf(ports.Unimplemented, "", "not there yet")

func (s *State) Follower(name string, f ports.Family) (ports.FollowerMark, bool, error) {
	return ports.FollowerMark{}, false, errNotYet
}
func (s *State) SetFollower(name string, f ports.Family, mark ports.FollowerMark) error {
	return errNotYet
}
func (s *State) Unsettled(name string, f ports.Family, after string, limit int) ([]ports.Unsettled, error) {
	return nil, errNotYet
}
func (s *State) SetUnsettled(name string, f ports.Family, keys []ports.Unsettled) error {
	return errNotYet
}
func (s *State) DropUnsettled(name string, f ports.Family, keys ...string) error { return errNotYet }
func (s *State) CopyMark(from, to string, f ports.Family) (*ports.CopyMark, error) {
	return nil, errNotYet
}
func (s *State) SetCopyMark(from, to string, f ports.Family, mark *ports.CopyMark) error {
	return errNotYet
}
func (s *State) Assignment(f ports.Family) (*ports.Assignment, error)    { return nil, errNotYet }
func (s *State) SetAssignment(f ports.Family, a *ports.Assignment) error { return errNotYet }
