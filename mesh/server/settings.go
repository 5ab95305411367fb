package server

import (
	"time"

	"github.com/nats-io/jwt/v2"
	nats "github.com/nats-io/nats-server/v2/server"

	"stead/host/fault"
	"stead/mesh/identity"
)

const (
	// maxConnections is over what the accounts allow one node each of 4,000.
	maxConnections = 16384
	// maxPending is how much the server keeps for a connection that does not read
	// before it is cut off. A thousand nodes that report at once send as much to one
	// controller faster than it reads: 16 MiB were seen to cut it off.
	maxPending = 64 << 20
	// maxMemory bounds streams in memory. stead has none; consumers have little.
	maxMemory = 64 << 20
	// maxBatch is how many messages one atomic commit may have: what an apply may
	// hold.
	maxBatch = 1000
)

// settings are all that the server is told. Whatever is not here has the NATS
// server's default; what is here has a reason or a bound.
func settings(o Options, resolver nats.AccountResolver) (*nats.Options, error) {
	host, port, err := hostPort(o.Listen)
	if err != nil {
		return nil, err
	}
	operator, err := jwt.DecodeOperatorClaims(o.Trust.Operator)
	if err != nil {
		return nil, fault.New(fault.Invalid, "read operator", o.Name, err)
	}
	return &nats.Options{
		ServerName: o.Name, Host: host, Port: port,

		NoSigs: true, // the process's signals are ours
		NoLog:  true, // see logger

		// Who may connect: users that the accounts signed, and nobody else.
		TrustedOperators: []*jwt.OperatorClaims{operator}, SystemAccount: o.Trust.System, AccountResolver: resolver,

		TLSConfig: o.TLS.Clone(), AllowNonTLS: false,
		// Many nodes that come back at once wait for each other's handshakes.
		TLSTimeout: 10, AuthTimeout: 10,

		JetStream: true, StoreDir: o.Store, DisableJetStreamBanner: true,
		// Without it a power cut takes everything of the last two minutes.
		SyncAlways:         true,
		JetStreamMaxStore:  o.MaxStore, // the default is 75 % of what is free at the start
		JetStreamMaxMemory: maxMemory,
		JetStreamLimits: nats.JSLimitOpts{
			MaxBatchSize: maxBatch, MaxBatchInflightPerStream: 8, MaxBatchInflightTotal: 32, MaxBatchTimeout: 10 * time.Second,
			MaxAckPending: 1024, Duplicates: 2 * time.Minute,
			DefaultMaxConsumers: 64, // only controllers have any; a stream may say more
		},

		MaxConn: maxConnections, MaxPayload: identity.MaxPayload, MaxPending: maxPending, MaxControlLine: 4 << 10,
		MaxSubs: 2048, MaxSubTokens: 16,
		PingInterval: 20 * time.Second, MaxPingsOut: 2, WriteDeadline: 10 * time.Second,
		// No port for monitoring, no profiles, no cluster, no gateways, leaf nodes,
		// WebSocket or MQTT: what is not set does not listen.
	}, nil
}
