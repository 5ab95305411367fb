package cases

import "regexp"

// caseID finds the id of a case in the name of its test.
var caseID = regexp.MustCompile(`F\d{3}`)

// ids of all cases.
const ids = `
F001 F002 F003 F004 F005 F006 F007 F008 F009 F010 F011 F012 F013 F014 F015 F017 F018 F019 F020 F021 F022 F023 F025
F026 F027 F029 F030 F031 F034 F035 F036 F038 F039 F040 F041 F044 F046 F047 F048 F049 F051 F053 F054 F055 F056 F058
F060 F061 F062 F063 F064 F067 F068 F069 F070 F071 F072 F074 F076 F077 F078 F079 F081 F082 F084 F085 F086 F088 F089
F090 F091 F093 F094 F095 F096 F097 F098 F102 F103 F105 F106 F107 F109 F110 F111 F113 F114 F116 F118 F120 F121 F122`

// faked are the cases whose test runs against fakes, with the reason.
var faked = map[string]string{
	"F118": "a lab node has no SELinux",
}
