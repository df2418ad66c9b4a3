package ports

// The schema is the source of truth for the four UV tables of the wire contract (F.8), the columns that holdfast adds to
// them, and its own tables. Every engine's DDL, the filters and the documentation come from it.

// ColumnType is what a column holds.
type ColumnType string

const (
	Identity ColumnType = "AutoIdentity" // 64-bit, given by the engine
	Text     ColumnType = "String"
	Opaque   ColumnType = "Opaque" // a JSON value, byte for byte, as text; never parsed
	Integer  ColumnType = "Integer"
	Float    ColumnType = "Float"
	Boolean  ColumnType = "Boolean"
	Created  ColumnType = "CreateDate"
	Updated  ColumnType = "UpdateDate"
	Deleted  ColumnType = "Deleted"
)

// Column is one column of a table.
type Column struct {
	Name  string
	Type  ColumnType
	Size  int    // characters, as the contract says; 0 is the engine's default. holdfast cuts nothing at it
	Alias string // of an attempt: the bridges' name of the member that fills the column when the column's own is absent
}

// Index is one index of a table. Lists filtered by Status, RunID, AssignedBeaconID or OperationHash begin at their page, in
// the order of the list, however many rows there are: for that some of the contract's indexes are wider here, under their
// names, which costs half of what another index costs, and there are some more.
type Index struct {
	Name    string
	Columns []string
	Unique  bool
}

// Table is one table. A record's known members are the columns in Members, in this order; Engine columns belong to the
// database and Ours to holdfast, and neither is ever part of a record.
type Table struct {
	Name    string
	Kind    Kind
	Key     string // the member that is the record's key
	Engine  []Column
	Members []Column
	Ours    []Column
	Indexes []Index

	places map[string]int
}

// Place gives the position of a member among Members; ok is false for a name that is no column.
func (t *Table) Place(name []byte) (at int, ok bool) {
	at, ok = t.places[string(name)]
	return at, ok
}

// Member gives the position of a column that the table must have.
func (t *Table) Member(name string) int {
	at, ok := t.places[name]
	if !ok {
		panic("ports: " + t.Name + " has no column " + name)
	}
	return at
}

func text(name string, size int) Column { return Column{Name: name, Type: Text, Size: size} }
func integer(name string) Column        { return Column{Name: name, Type: Integer} }
func opaque(name string) Column         { return Column{Name: name, Type: Opaque} }

// stamps are the columns that every table of ours carries: what the first write fixed, and who changed the row last.
func stamps(more ...Column) []Column {
	return append(more,
		text("OrderKey", 64), text("ReceivedAt", 50), text("Actor", 128), text("Origin", 16),
		text("ChangeHost", 36), integer("ChangeSeq"))
}

// Stamps is the column that keeps which write of a hub set which member; see Held. Only the store itself reads it.
const Stamps = "Stamps"

func table(t Table) *Table {
	t.places = make(map[string]int, len(t.Members))
	for i, c := range t.Members {
		t.places[c.Name] = i
	}
	t.Indexes = append(t.Indexes, Index{Name: "IX_" + t.Name + "_Change", Columns: []string{"ChangeHost", "ChangeSeq"}})
	return &t
}

// Items, Events, Attempts and Manifests are the four record tables.
var (
	Items = table(Table{
		Name: "UVQueueWorkItem", Kind: KindItem, Key: "WorkItemHash",
		Engine: []Column{{Name: "IDUVQueueWorkItem", Type: Identity}, {Name: "CreateDate", Type: Created}, {Name: "UpdateDate", Type: Updated}, {Name: "Deleted", Type: Deleted}},
		Members: []Column{
			text("WorkItemHash", 128), text("RunID", 128), text("RunHash", 128), text("NodeHash", 128), text("OperationHash", 128),
			text("Capability", 128), text("Action", 128), opaque("Settings"), text("AffinityKey", 128), text("AssignedBeaconID", 128),
			text("Status", 32), integer("Priority"), text("EnqueuedAt", 50), text("DispatchedAt", 50), text("StartedAt", 50),
			text("ClaimedAt", 50), text("CompletedAt", 50), text("CanceledAt", 50), text("AssignedAt", 50), text("LastEventAt", 50),
			integer("QueueWaitMs"), integer("TimeoutMs"), {Name: "Health", Type: Float}, text("HealthLabel", 32), text("HealthReason", 512),
			text("HealthComputedAt", 50), integer("AttemptNumber"), integer("MaxAttempts"), integer("RetryBackoffMs"), text("RetryAfter", 50),
			text("LastError", 0), opaque("Result"), {Name: "CancelRequested", Type: Boolean}, text("CancelReason", 512),
		},
		Ours: append(stamps(text("Extra", 0), text("EnqueuedKey", 30)), text(Stamps, 0)),
		Indexes: []Index{
			{Name: "IX_UVQueueWorkItem_Hash", Columns: []string{"WorkItemHash"}, Unique: true},
			{Name: "IX_UVQueueWorkItem_Status", Columns: []string{"Status", "EnqueuedKey", "WorkItemHash"}},
			{Name: "IX_UVQueueWorkItem_RunID", Columns: []string{"RunID", "EnqueuedKey", "WorkItemHash"}},
			{Name: "IX_UVQueueWorkItem_Assigned", Columns: []string{"AssignedBeaconID", "Status"}},
			{Name: "IX_UVQueueWorkItem_Beacon", Columns: []string{"AssignedBeaconID", "EnqueuedKey", "WorkItemHash"}},
			{Name: "IX_UVQueueWorkItem_Dispatch", Columns: []string{"Status", "Priority", "EnqueuedAt"}},
			{Name: "IX_UVQueueWorkItem_Enqueued", Columns: []string{"EnqueuedKey", "WorkItemHash"}},
		},
	})
	Events = table(Table{
		Name: "UVQueueWorkItemEvent", Kind: KindEvent, Key: "WorkItemHash",
		Engine: []Column{{Name: "IDUVQueueWorkItemEvent", Type: Identity}, {Name: "CreateDate", Type: Created}, {Name: "Deleted", Type: Deleted}},
		Members: []Column{
			text("EventGUID", 36), text("WorkItemHash", 128), text("EventType", 64), opaque("Payload"), text("EmittedAt", 50),
			integer("Seq"), text("FromStatus", 32), text("ToStatus", 32), text("BeaconID", 128),
		},
		Ours: stamps(text("Extra", 0)),
		Indexes: []Index{
			{Name: "IX_UVQueueEvent_GUID", Columns: []string{"EventGUID"}, Unique: true},
			{Name: "IX_UVQueueEvent_Hash", Columns: []string{"WorkItemHash"}},
			{Name: "IX_UVQueueEvent_Order", Columns: []string{"WorkItemHash", "OrderKey"}},
		},
	})
	Attempts = table(Table{
		Name: "UVQueueWorkItemAttempt", Kind: KindAttempt, Key: "WorkItemHash",
		Engine: []Column{{Name: "IDUVQueueWorkItemAttempt", Type: Identity}, {Name: "CreateDate", Type: Created}, {Name: "Deleted", Type: Deleted}},
		Members: []Column{
			text("WorkItemHash", 128), integer("AttemptNumber"), text("BeaconID", 128),
			{Name: "StartedAt", Type: Text, Size: 50, Alias: "DispatchedAt"},
			{Name: "EndedAt", Type: Text, Size: 50, Alias: "CompletedAt"},
			text("Outcome", 32),
			{Name: "Error", Type: Text, Alias: "ErrorMessage"},
		},
		Ours: append(stamps(text("Extra", 0)), text(Stamps, 0)),
		Indexes: []Index{
			{Name: "IX_UVQueueAttempt_HashNum", Columns: []string{"WorkItemHash", "AttemptNumber"}, Unique: true},
		},
	})
	// Manifests: a manifest's whole text stands in ManifestJSON, an Engine column here because no member is called so; its other
	// columns are projections for people and filters, and nothing is read back from them.
	Manifests = table(Table{
		Name: "UVManifest", Kind: KindManifest, Key: "Hash",
		Engine: []Column{{Name: "IDUVManifest", Type: Identity}, {Name: "ManifestJSON", Type: Opaque}, {Name: "Live", Type: Boolean}, {Name: "CreateDate", Type: Created}, {Name: "UpdateDate", Type: Updated}, {Name: "Deleted", Type: Deleted}},
		Members: []Column{
			text("Hash", 128), text("OperationHash", 128), text("OperationName", 500), text("Status", 32), text("RunMode", 32),
			text("StartTime", 50), text("StopTime", 50), integer("ElapsedMs"), text("StagingPath", 1024),
		},
		Ours: append(stamps(), text(Stamps, 0)),
		Indexes: []Index{
			{Name: "IX_UVManifest_Hash", Columns: []string{"Hash"}, Unique: true},
			{Name: "IX_UVManifest_StatusStop", Columns: []string{"Status", "StopTime"}},
			{Name: "IX_UVManifest_OpHash", Columns: []string{"OperationHash", "OrderKey", "Hash"}},
			{Name: "IX_UVManifest_StatusOrder", Columns: []string{"Status", "OrderKey", "Hash"}},
			{Name: "IX_UVManifest_Order", Columns: []string{"OrderKey", "Hash"}},
		},
	})

	// EarlyWrites is the table of early writes: what hubs sent before its item. They are no records; nobody reads or copies them.
	EarlyWrites = &Table{
		Name: "UVEarly", Key: "WorkItemHash",
		Engine: []Column{{Name: "IDUVEarly", Type: Identity}},
		Ours:   []Column{text("WorkItemHash", 128), integer("ReceivedMs"), opaque("Entry")},
		Indexes: []Index{
			{Name: "IX_UVEarly_Hash", Columns: []string{"WorkItemHash"}},
			{Name: "IX_UVEarly_Received", Columns: []string{"ReceivedMs"}},
		},
	}

	// Tables lists the record tables.
	Tables = []*Table{Items, Events, Attempts, Manifests}
)

// TableOf gives the table of a kind.
func TableOf(k Kind) *Table {
	for _, t := range Tables {
		if t.Kind == k {
			return t
		}
	}
	panic("ports: no table for kind " + string(k))
}

// SchemaVersion counts the forward-only changes of the schema. A store with a higher one belongs to a newer holdfast.
const SchemaVersion = 2

// TerminalItems and TerminalManifests are the statuses in which a record is finished.
var (
	TerminalItems     = []string{"Complete", "Completed", "Error", "Failed", "Timeout", "Canceled", "Stalled"}
	TerminalManifests = []string{"Complete", "Completed", "Error", "Failed", "Stalled", "Abandoned"}
)
