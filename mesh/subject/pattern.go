package subject

// Any stands for one whole token in a pattern.
const Any = "*"

// Own stands for the name of the user in a pattern of the permission table: the
// server puts in the name that the mesh signed.
const Own = "{{name()}}"

// OwnInbox is the only pattern on which a user of any role but the controller's
// hears replies. The server puts in the user's public key, so nobody hears what
// was answered to another.
const OwnInbox = "_INBOX.{{subject()}}.>"

// Inbox is the prefix of the inbox of the user with this public key; it goes
// with OwnInbox.
func Inbox(publicKey string) string { return "_INBOX." + publicKey }

// TopicPattern is a topic of every node that node matches: a name, Any or Own.
func TopicPattern(node string, t Topic) string { return nodeRoot + node + "." + string(t) }

// OperationPattern is all operations of a class.
func OperationPattern(c Class) string { return meshRoot + string(c) + "." + Any }

// VerbPattern is the verbs called verb (a name or Any) of a class, of every
// seat, on the nodes that node matches: a name, All, Any or Own.
func VerbPattern(c Class, node, verb string) string {
	return seatRoot + string(c) + "." + node + "." + Any + "." + verb
}

// Discovery are the subjects on which a NATS service tells of itself: to
// everybody, by its name, and by name and id. See the package micro of nats.go.
// These may be asked and heard; between accounts they pass by DiscoveryPatterns.
func Discovery() []string {
	var all []string
	for _, what := range []string{"PING", "INFO", "STATS"} {
		all = append(all, "$SRV."+what, "$SRV."+what+"."+Any, "$SRV."+what+"."+Any+"."+Any)
	}
	return all
}

// DiscoveryPatterns match every subject of Discovery. An import of a subject
// without a wildcard would hand on answers too.
func DiscoveryPatterns() []string {
	const root = "$SRV." + Any
	return []string{root, root + "." + Any, root + "." + Any + "." + Any}
}
