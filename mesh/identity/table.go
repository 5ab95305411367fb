package identity

import (
	"time"

	"stead/mesh/subject"
)

// Account is a NATS account: a class of trust, with subjects of its own.
type Account string

// The NATS accounts.
const (
	CTL    Account = "CTL"    // controllers; the only one with JetStream
	HOST   Account = "HOST"   // all that nodes ask
	TOOL   Account = "TOOL"   // all that nodes are asked and told
	OPS    Account = "OPS"    // operators
	VIEW   Account = "VIEW"   // viewers
	ENROLL Account = "ENROLL" // who joins; nobody may yet
	SYS    Account = "SYS"    // the NATS servers themselves
)

// Role is what a user may do: a row of the table, and a key that signs it.
type Role string

// The roles. A process on a node has two users, since who asks and who is asked
// live in different accounts: the host is Host and Listener, the runtime is
// Runtime and Tool.
const (
	Controller Role = "controller"
	Host       Role = "host"     // the host asks controllers
	Listener   Role = "listener" // the host is told of changes and asked for plans
	Runtime    Role = "runtime"  // the runtime asks controllers
	Tool       Role = "tool"     // the runtime serves verbs
	Operator   Role = "operator"
	Viewer     Role = "viewer"
)

// Table is all that anybody may do. It is data: to change a permission is to
// change a row.
type Table struct {
	Accounts []AccountRow
	Roles    []RoleRow
	Services []ServiceRow
}

// AccountRow bounds one account. A bound of 0 allows none.
type AccountRow struct {
	Account     Account
	JetStream   bool
	Connections int64
}

// RoleRow is what the users of one role may do. Patterns may hold subject.Own
// and subject.OwnInbox. An empty Publish or Subscribe allows nothing.
type RoleRow struct {
	Role      Role
	Account   Account
	Publish   []string
	Deny      []string // of Publish
	Subscribe []string
	// Answer allows an answer to the reply subject of a message that was
	// delivered, as often as wanted, for this long after it came. 0 allows none.
	Answer time.Duration
	// Subscriptions and Payload bound one connection; payload in bytes.
	Subscriptions, Payload int64
}

// ServiceRow lets messages on Subject pass from the users of the accounts To to
// subscriptions in the account From, and the answers back.
type ServiceRow struct {
	Subject string
	From    Account
	To      []Account
	// Many allows more than one answer, each at most Within after the one before.
	// Otherwise the first answer is the only one.
	Many bool
	// Within is how long the server keeps the way back; 0 is two minutes. It keeps
	// it for as long after the last of many answers too.
	Within time.Duration
}

const (
	// answerFor is how long a node may go on answering one request. Who follows
	// a journal for longer asks again, from where it was.
	answerFor = time.Hour
	// actFor is how long the way back of an act is kept: it may wait ten minutes for
	// a job, and its answer is the first thing that comes.
	actFor   = 11 * time.Minute
	maxUsers = 16384
	maxInbox = 512  // subscriptions of a connection that only hears answers: one for each call under way
	maxServe = 1024 // of one that serves
	// MaxPayload is the largest message of the mesh, in bytes.
	MaxPayload = 1 << 20
)

// Permissions returns the table. Each call returns a copy of its own.
func Permissions() Table {
	return Table{Accounts: accountRows(), Roles: roleRows(), Services: serviceRows()}
}

func accountRows() []AccountRow {
	return []AccountRow{
		{Account: CTL, JetStream: true, Connections: 64},
		{Account: HOST, Connections: maxUsers},
		{Account: TOOL, Connections: maxUsers},
		{Account: OPS, Connections: 1024},
		{Account: VIEW, Connections: 1024},
		{Account: ENROLL},
		{Account: SYS},
	}
}

func roleRows() []RoleRow {
	inbox := []string{subject.OwnInbox}
	return []RoleRow{
		{
			Role: Controller, Account: CTL,
			Publish: []string{">"}, Deny: []string{"$SYS.>"},
			Subscribe:     []string{">"},
			Subscriptions: maxServe, Payload: MaxPayload,
		}, {
			Role: Host, Account: HOST,
			Publish:       topics(subject.Own, subject.HostTopics()),
			Subscribe:     inbox,
			Subscriptions: maxInbox, Payload: MaxPayload,
		}, {
			Role: Listener, Account: TOOL,
			Subscribe: topics(subject.Own, subject.NodeTopics()), Answer: answerFor,
			Subscriptions: maxServe, Payload: MaxPayload,
		}, {
			Role: Runtime, Account: HOST,
			Publish:       topics(subject.Own, subject.RuntimeTopics()),
			Subscribe:     inbox,
			Subscriptions: maxInbox, Payload: MaxPayload,
		}, {
			Role: Tool, Account: TOOL,
			Subscribe: toolHears(), Answer: answerFor,
			Subscriptions: maxServe, Payload: MaxPayload,
		}, {
			Role: Operator, Account: OPS,
			Publish: append([]string{
				subject.OperationPattern(subject.Read), subject.OperationPattern(subject.Write),
				subject.VerbPattern(subject.Read, subject.Any, subject.Any),
				subject.VerbPattern(subject.Write, subject.Any, subject.Any),
			}, subject.Discovery()...),
			Subscribe:     inbox,
			Subscriptions: maxInbox, Payload: MaxPayload,
		}, {
			Role: Viewer, Account: VIEW,
			Publish: append([]string{
				subject.OperationPattern(subject.Read),
				subject.VerbPattern(subject.Read, subject.Any, subject.Any),
			}, subject.Discovery()...),
			// Log lines hold what programs should not have written: a right of its own.
			Deny:          []string{subject.VerbPattern(subject.Read, subject.Any, "journal")},
			Subscribe:     inbox,
			Subscriptions: maxInbox, Payload: 64 << 10,
		},
	}
}

// toolHears are the verbs of the node itself and of all nodes, the hint that
// something changed, and the questions of service discovery.
func toolHears() []string {
	hears := []string{subject.TopicPattern(subject.Own, subject.Changed)}
	for _, c := range []subject.Class{subject.Read, subject.Write} {
		for _, node := range []string{subject.Own, string(subject.All)} {
			hears = append(hears, subject.VerbPattern(c, node, subject.Any))
		}
	}
	return append(hears, subject.Discovery()...)
}

func serviceRows() []ServiceRow {
	var rows []ServiceRow
	for _, t := range []subject.Topic{subject.Sync, subject.Body, subject.Report, subject.Profile, subject.Event,
		subject.Tools, subject.Claim} {
		rows = append(rows, ServiceRow{Subject: subject.TopicPattern(subject.Any, t), From: CTL, To: []Account{HOST}})
	}
	for _, t := range subject.NodeTopics() {
		rows = append(rows, ServiceRow{Subject: subject.TopicPattern(subject.Any, t), From: TOOL, To: []Account{CTL}, Many: t == subject.Plan})
	}
	rows = append(rows,
		ServiceRow{subject.OperationPattern(subject.Read), CTL, []Account{OPS, VIEW}, true, 0},
		ServiceRow{subject.OperationPattern(subject.Write), CTL, []Account{OPS}, true, 0},
		ServiceRow{subject.VerbPattern(subject.Read, subject.Any, subject.Any), TOOL, []Account{OPS, VIEW}, true, 0},
		ServiceRow{subject.VerbPattern(subject.Write, subject.Any, subject.Any), TOOL, []Account{OPS}, true, actFor},
	)
	for _, s := range subject.DiscoveryPatterns() {
		rows = append(rows, ServiceRow{s, TOOL, []Account{OPS, VIEW}, true, 0})
	}
	return rows
}

func topics(node string, all []subject.Topic) []string {
	var out []string
	for _, t := range all {
		out = append(out, subject.TopicPattern(node, t))
	}
	return out
}

// Role returns the row of a role, and false when the table has none.
func (t Table) Role(r Role) (RoleRow, bool) {
	for _, row := range t.Roles {
		if row.Role == r {
			return row, true
		}
	}
	return RoleRow{}, false
}
