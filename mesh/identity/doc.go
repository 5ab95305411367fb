// Package identity says who may do what in the mesh, and proves it: the one
// permission table, the keys of the mesh, and the credentials made with them.
//
// Permissions returns the table: what each role may publish, hear and answer,
// in which NATS account it lives, and what passes between the accounts. Nothing
// else in stead grants anything. A Mesh is a folder of keys, made once by Create
// and opened again by Open; Trust renders the table with them to the signed
// claims that a NATS server trusts, and Mint signs the credentials of one user
// of one role. Names are checked before anything is signed, since the server
// pastes the name into the patterns of the table.
//
// The accounts keep classes of trust apart, because NATS checks what a user
// publishes and hears but not where it lets others answer: inside one account a
// user can have an honest answer delivered to any subject of that account. So
// no account holds both somebody who asks and a subscription that acts. What
// passes from one account to another is a service of the table; on its way the
// server replaces the reply subject, and stamps the caller into the message.
// Credentials.Caller reads that stamp.
//
// Files of keys and credentials belong to one user alone (mode 0600, folders
// 0700); files that others may read are refused. All errors are *fault.Error.
// A Mesh and Credentials are safe for concurrent use; nothing here dials.
package identity
