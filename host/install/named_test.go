package install

import (
	"strings"

	"stead/host/unit"
)

// named is a scene with a name.
type named struct {
	name string
	scene
}

// on makes a disk of pairs of path and text. "-> x" is a link to x, "dir" a
// folder.
func on(pairs ...string) machine {
	m := machine{}
	for i := 0; i < len(pairs); i += 2 {
		t := thing{text: pairs[i+1]}
		if to, ok := strings.CutPrefix(t.text, "-> "); ok {
			t = thing{sort: link, text: to}
		} else if t.text == "dir" {
			t = thing{sort: folder}
		}
		m[pairs[i]] = t
	}
	return m
}

// syntax are unit files of ga.service with something unusual in their form.
var syntax = []string{
	"[Install]\nWantedBy=a.target \\\n# comment\n  ; foo\\\n b.target\n",
	"[Install]\nWantedBy=a.target \\\n   \n b.target\n",
	"[Install]\nWantedBy=a.target \\\n\n b.target\nWantedBy=c.target",
	"[Install]\nWantedBy=a.target\n\xef\xbb\xbfWantedBy=b.target\n\xef\xbb\xbfWantedBy=c.target\n",
	"\xef\xbb\xbf# comment\n[Install]\nWantedBy=a.target\n",
	"[Install]\nWantedBy=a.target \\\n\xef\xbb\xbf# foo.target\nWantedBy=b.target\n",
	"[Install]\n \xef\xbb\xbfWantedBy=b.target\nWantedBy=c.target\n",
	"[Install]\rWantedBy=a.target\rWantedBy=b.target\r",
	"[Install]\r\nWantedBy=a.target \\\r\n b.target\r\n\r\nWantedBy=c.target",
	"[Install]\n\rWantedBy=a.target \\\n\r b.target\r\nWantedBy=c.target",
	"[Install]\nWantedBy=a.target \\\n\r\n b.target\n",
	"[Install]\x00WantedBy=a.target \\\x00 b.target\nWantedBy=c.target",
	"[Install]\nWantedBy=a.target \\\x00\n b.target\nWantedBy=c.target",
	"[Install]\nWantedBy=a.target \\\r\x00\n b.target\nWantedBy=c.target",
	"WantedBy=z.target\n[Install]\nWantedBy=a.target",
	"[Install]\nWantedBy=a.target\n[Foo\nWantedBy=b.target",
	"[Unit\n[Install]\nWantedBy=a.target\n",
	"[]\n[Install]\nWantedBy=a.target\n",
	"[a\x01b]\n[Install]\nWantedBy=a.target\n",
	"[a\"b]\n[Install]\nWantedBy=a.target\n",
	"[a'b]\n[Install]\nWantedBy=a.target\n",
	"[a\\\\b]\n[Install]\nWantedBy=a.target\n",
	"[a\tb]\n[Install]\nWantedBy=a.target\n",
	"[a\x7fb]\n[Install]\nWantedBy=a.target\n",
	"[aäb]\n[Install]\nWantedBy=a.target\n",
	"[\nWantedBy=b.target\n[Install]\nWantedBy=a.target\n",
	" \t[Install] \t\n  WantedBy \t= \t a.target \t\nWantedBy=c.target",
	"[Install] # c\nWantedBy=a.target\n",
	"[ Install ]\nWantedBy=a.target\n",
	"[Install]\nWantedBy=a.target\n[X-Foo]\nWantedBy=b.target\n[Servce]\nWantedBy=c.target\n[Install]\nWantedBy=d.target\n",
	"[Service]\nExecStart=/bin/\xff\n[Install]\nWantedBy=a.target\n",
	"# \xff\n[Install]\nWantedBy=a.target\n",
	"x=\xff\n[Install]\nWantedBy=a.target\n",
	"[Install]\nWantedBy=a.target\n[X-f]\nfoo=\xef\xb7\x90\n",
	"[Install]\nWantedBy=a.target\n[X-f]\nfoo=\xef\xbf\xbe\n",
	"[Install]\nWantedBy=a.target\n[X-f]\nfoo=\xef\xbf\xbd\xef\xbb\xbf\xf4\x8f\xbf\xbd\n",
	"[Install]\nWantedBy=a.target\n[X-f]\nfoo=\xed\xa0\x80\n",
	"[Install]\nWantedBy=a.target\n[X-f]\nfoo=\xf0\x9f\xbf\xbf\n",
	"[Install]\nWantedBy=a.target\n[X-f]\nfoo=\xc0\x80\n",
	"[Install]\nWantedBy=a.target \\",
	"[Install]\nWantedBy=a.target \\\n#foo",
	"[Install]\nWantedBy=a.target \\\\\n b.target\nWantedBy=c.target",
	"[Install]\nWantedBy=a\\x2db.target \"q.target\" x\"y\".target \\\"z.target c\\ d.target\n",
	"[Install]\nWantedBy=a.target 'b.target' \"c'.target\" d.target\n",
	"[Install]\nWantedBy=a.target b.target \"c.target d.target\nWantedBy=e.target\n",
	"[Install]\nWantedBy=a.target \"\" b.target\n",
	"[Install]\nWantedBy=\\\"z.target\" c.target\n",
	"[Install]\nWantedBy=a.target\nWantedBy=\"\"\n",
	"[Install]\nWantedBy=a.target b.target\nWantedBy=\nWantedBy=c.target\nRequiredBy=r.target\nRequiredBy=\nAlias=x.service\nAlias=\n",
	"[Install]\n=foo\nWantedBy\n = x\nWantedBy=a.target",
	"[install]\nWantedBy=b.target\n[Install]\nwantedby=c.target\nWantedBy=a.target",
	"[Install]\nWantedBy==a.target\nWantedBy=b.target\n",
	"[Install]\nWantedBy=a.target\vb.target\nWantedBy=c.target\f",
	"[Install]\nWantedBy=a.target # b.target\n",
	"[Install]\nWantedBy=a.target\n[X-a]\nA=" + strings.Repeat("x", unit.LineMax-2),
	"[Install]\nWantedBy=a.target\n[X-a]\nA=" + strings.Repeat("x", unit.LineMax-3),
	"[Install]\nWantedBy=a.target\n#" + strings.Repeat("x", unit.LineMax-1) + "\n",
	"[Install]\nWantedBy=a.target\n#" + strings.Repeat("x", unit.LineMax-2) + "\r\n",
	"[Install]\nWantedBy=a.target\n[X-a]\nA=" + strings.Repeat("x", unit.LineMax/2) + "\\\n" + strings.Repeat("x", unit.LineMax/2-3) + "\n",
	"[Install]\nWantedBy=a.target\n[X-a]\nA=" + strings.Repeat("x", unit.LineMax/2) + "\\\n" + strings.Repeat("x", unit.LineMax/2-2) + "\n",
	" \n",
	"[Install]\n",
	"[Install]\nWantedBy=%. % x% 100%\nWantedBy=a.target",
	"[Install]\nWantedBy=%A %h.target i%i.target a.target\n",
	"[Install]\nWantedBy=" + strings.Repeat("x", 241) + ".target a.target\n",
	"[Install]\nWantedBy=" + strings.Repeat("x", 242) + ".target a.target\n",
	"[Install]\nWantedBy=" + strings.Repeat("x", 243) + ".target a.target\n",
	"[Install]\nWantedBy=" + strings.Repeat("x", 249) + ".target a.target\n",
	"[Install]\nWantedBy=" + strings.Repeat("x", 242) + "%n.target a.target\n",
	"[Install]\nAlias=s.service ga.service x.service -y.service ./a.target.wants/ga.service b.wants.target.requires//ga.service\n",
	"[Install]\nAlias=a.target.wants/../ga.service\n",
	"[Install]\nAlias=a.target.wants/ga.service/\n",
	"[Install]\nAlias=a.b.wants/ga.service\n",
	"[Install]\nAlias=../a.target.wants/ga.service\n",
	"[Install]\nAlias=sub/a.target.wants/ga.service\n",
	"[Install]\nAlias=/etc/systemd/system/x.service\n",
	"[Install]\nAlias=\"\" x.service\n",
	"[Install]\nAlias=\"x y.service\" y.service\n",
	"[Install]\nAlias=x%%y.service y.service\n",
	"[Install]\nAlias=x.scope\n",
	"[Install]\nAlso=\"gb.service\"\nWantedBy=a.target",
	"[Install]\nAlso=foo\nWantedBy=a.target",
	"[Install]\nAlso=%h.service\nWantedBy=a.target",
	"[Install]\nAlso=gb\\.service\nWantedBy=a.target",
	"[Install]\nDefaultInstance=/\nWantedBy=a-%i.target",
}

// namedScenes are what was tried by hand, and what generated scenes once
// got wrong.
func namedScenes() []named {
	const wants, also = "[Install]\nWantedBy=a.target\n", "[Install]\nWantedBy=also.target\nAlso=gb.service gc.service\n"
	const tmpl = "[Install]\nDefaultInstance=d\nWantedBy=a.target\n"
	var all []named
	add := func(name string, ask unit.Name, pairs ...string) {
		all = append(all, named{name, scene{on(pairs...), ask}})
	}
	for _, text := range syntax {
		add("syntax", "ga.service", etc+"/ga.service", text)
	}
	add("slices skip Alias", "gq.slice", etc+"/gq.slice", "[Install]\nAlias=x.slice y.service\nWantedBy=a.target\n")
	add("types with aliases", "gd.device", etc+"/gd.device", "[Install]\nAlias=x.device\nWantedBy=a.target\n")
	add("a mount skips Alias", "gm.mount", etc+"/gm.mount", "[Install]\nAlias=x.mount\n")
	add("a later step's error is lost", "ga.service", etc+"/ga.service", "[Install]\nWantedBy=a.target\nRequiredBy=bad\n")
	add("a first step's error is not", "ga.service", etc+"/ga.service", "[Install]\nWantedBy=bad a.target\nRequiredBy=a.target\n")
	add("missing", "ga.service")
	add("masked", "ga.service", etc+"/ga.service", "-> /dev/null")
	add("masked template", "gt@a.service", etc+"/gt@.service", "-> ../../../dev/null")
	add("empty", "ga.service", etc+"/ga.service", "")
	add("linked to something empty", "ga.service", etc+"/ga.service", "-> /opt/g/x", "/opt/g/x", "")
	add("a folder", "ga.service", etc+"/ga.service", "dir", usr+"/ga.service", wants)
	add("generated", "ga.service", gen+"/ga.service", wants)
	add("also generated", "gb.service", gen+"/ga.service", wants, etc+"/gb.service", "[Install]\nAlso=ga.service\n")
	add("also: missing, then another", "ga.service", etc+"/ga.service", also, etc+"/gc.service", wants)
	add("also: broken, then another", "ga.service", etc+"/ga.service", also, etc+"/gb.service", wants+"[Foo\n", etc+"/gc.service", wants)
	add("also: masked, then another", "ga.service", etc+"/ga.service", also, etc+"/gb.service", "-> /dev/null", etc+"/gc.service", wants)
	add("also: named before the line that breaks the file", "ga.service", etc+"/ga.service", "[Install]\nAlso=gb.service\n", etc+"/gb.service", "[Install]\nAlso=gc.service foo\n", etc+"/gc.service", wants)
	add("also: named by a broken drop-in", "ga.service", etc+"/ga.service", "[Install]\nAlso=gb.service\n", etc+"/gb.service", wants, etc+"/gb.service.d/x.conf", "[Install]\nAlso=gc.service\n[Foo\n", etc+"/gc.service", wants)
	add("also: a ring", "ga.service", etc+"/ga.service", also+"Also=ga.service\n", etc+"/gb.service", wants+"Also=ga.service\n")
	add("also: a configured alias", "ga.service", etc+"/ga.service", also, etc+"/gb.service", "-> "+usr+"/gd.service", usr+"/gd.service", wants)
	add("also: a vendor's alias", "ga.service", etc+"/ga.service", also, usr+"/gb.service", "-> gd.service", usr+"/gd.service", wants)
	add("also: a vendor's alias of nothing ends the call", "ga.service", etc+"/ga.service", also, usr+"/gb.service", "-> gd.service", etc+"/gc.service", wants)
	add("also: a linked unit", "ga.service", etc+"/ga.service", also, etc+"/gb.service", "-> /opt/g/gb.service", "/opt/g/gb.service", wants)
	add("also: a unit linked by a vendor", "ga.service", etc+"/ga.service", also, usr+"/gb.service", "-> /opt/g/gb.service", "/opt/g/gb.service", wants)
	add("also: the same alias", "ga.service", etc+"/ga.service", also+"Alias=x.service\n", etc+"/gb.service", "[Install]\nAlias=x.service\n")
	add("also: an alias that the call has just made", "ga.service", etc+"/ga.service", "[Install]\nAlias=gx.service\nAlso=gx.service\n")
	add("also: an instance of a template that the call has just linked", "gt@.service", usr+"/gt@.service", "-> /opt/g/gt@.service", "/opt/g/gt@.service", "[Install]\nAlso=gt@a.service\nAlias=gu@.service\n")
	add("also: the template after its instance", "ga.service", etc+"/ga.service", "[Install]\nAlso=gt@d.service gt@.service\n", etc+"/gt@.service", tmpl, etc+"/gt@d.service", wants)
	add("also: the instance after its template", "ga.service", etc+"/ga.service", "[Install]\nAlso=gt@.service gt@d.service\n", etc+"/gt@.service", tmpl, etc+"/gt@d.service", wants)
	for _, ask := range []unit.Name{"gt@.service", "gt@a-b.service", "gt@d.service", "gt@x@y.service"} {
		add("template", ask, etc+"/gt@.service", "[Install]\nDefaultInstance=d\nWantedBy=a.target b-%i.target j-%j.target n-%n.target p-%p.target N-%N.target w@.target w@%i.target w@x.target\nAlias=u@.service v@%i.service w@z.service w.service gt@d.service gt@.service\n")
		add("template without default", ask, etc+"/gt@.service", "[Install]\nWantedBy=a.target b-%i.target w@.target w@%i.target w@x.target\nAlias=u@.service v@%i.service w@z.service w.service\n")
		add("template in folders", ask, etc+"/gt@.service", "[Install]\nAlias=a.target.wants/gt@d.service a@.target.wants/gt@.service a.target.requires/gt@.service a@b.target.wants/gt@.service\n")
		add("template that is linked", ask, etc+"/gt@.service", "-> /opt/g/x@.service", "/opt/g/x@.service", tmpl+"Alias=u@.service\n")
		add("template that a vendor links", ask, usr+"/gt@.service", "-> /opt/g/x@.service", "/opt/g/x@.service", tmpl+"Alias=u@.service\n")
		add("template that is a vendor's alias", ask, usr+"/gt@.service", "-> gu@.service", usr+"/gu@.service", tmpl)
		add("template with drop-ins", ask, etc+"/gt@.service", "[Install]\nDefaultInstance=x\n", usr+"/gt@d.service.d/b.conf", "[Install]\nWantedBy=\nWantedBy=usr-d.target\n", etc+"/gt@.service.d/b.conf", "[Install]\nWantedBy=b.target\n", etc+"/gt@.service.d/a.conf", wants, etc+"/gt@.service.d/c.conf", "[Install]\nDefaultInstance=d\nWantedBy=c.target\n")
	}
	for _, value := range []string{"a\nDefaultInstance=b", "a\nDefaultInstance=", "a b", "\"ab\"", "%h", "%A", "a\nDefaultInstance=%A", "%i", "x\nDefaultInstance=%iy", "%n", "%N-%p-%j", `x\x2dy@z:`, strings.Repeat("x", 300)} {
		add("default instance", "gt@.service", etc+"/gt@.service", "[Install]\nDefaultInstance="+value+"\nWantedBy=a.target b-%i.target\nAlso=gu@%i.service\n", etc+"/gu@.service", wants)
	}
	for _, own := range []string{"-> /dev/null", "-> gt@.service", "-> gu@.service", "-> gu.service", "dir", "[Broken", "-> /opt/g/nothing", wants} {
		add("default instance of its own", "gt@.service", etc+"/gt@.service", tmpl+"Alias=x@.service\n", etc+"/gt@d.service", own)
		add("default instance of its own, not wanted", "gt@.service", etc+"/gt@.service", "[Install]\nDefaultInstance=d\nAlias=x@.service\n", etc+"/gt@d.service", own)
	}
	for _, dir := range []string{etc, usr, run, loc} {
		for _, to := range []string{"gr.service", usr + "/gr.service", lib + "/gr.service", "/opt/g/gr.service", "/opt/g/odd", "/opt/g/hop", "gr.socket", "gr@.service", "sub/ga.service", "../gr.service"} {
			add("link", "ga.service", dir+"/ga.service", "-> "+to, usr+"/gr.service", wants+"Alias=al.service\n", "/opt/g/gr.service", wants+"Alias=al.service\n", "/opt/g/odd", wants, "/opt/g/hop", "-> gr.service",
				dir+"/ga.service.d/x.conf", "[Install]\nWantedBy=\nWantedBy=dropin.target\nAlso=gb.service\n", etc+"/gb.service", wants)
			add("link to nothing", "ga.service", dir+"/ga.service", "-> "+to)
		}
	}
	add("a link to its own name", "ga.service", etc+"/ga.service", "-> "+lib+"/ga.service", usr+"/ga.service", wants)
	add("a vendor's link to its own name", "ga.service", loc+"/ga.service", "-> "+usr+"/ga.service", usr+"/ga.service", wants)
	add("a ring of links", "ga.service", etc+"/ga.service", "-> gb.service", etc+"/gb.service", "-> ga.service")
	add("a vendor's ring of links", "ga.service", usr+"/ga.service", "-> gb.service", usr+"/gb.service", "-> ga.service")
	add("a link to itself", "ga.service", usr+"/ga.service", "-> ga.service")
	add("a chain of aliases", "ga.service", usr+"/ga.service", "-> gb.service", usr+"/gb.service", "-> gc.service", usr+"/gc.service", wants)
	add("an alias of a linked unit", "ga.service", usr+"/ga.service", "-> gb.service", usr+"/gb.service", "-> /opt/g/x.service", "/opt/g/x.service", wants)
	add("an alias of a masked unit", "ga.service", usr+"/ga.service", "-> gb.service", etc+"/gb.service", "-> /dev/null", usr+"/gb.service", wants)
	add("an alias of an overridden unit", "ga.service", usr+"/ga.service", "-> gb.service", etc+"/gb.service", "[Install]\nWantedBy=etc.target\n", usr+"/gb.service", wants)
	add("an instance that is its template", "gt@a.service", etc+"/gt@a.service", "-> gt@.service", etc+"/gt@.service", wants)
	add("an instance that is its missing template", "gt@a.service", etc+"/gt@a.service", "-> gt@.service")
	add("an instance that is an alias", "gt@a.service", usr+"/gt@a.service", "-> gu@.service", usr+"/gu@.service", wants)
	add("an instance that is another instance", "gt@a.service", usr+"/gt@a.service", "-> gu@b.service", usr+"/gu@.service", wants)
	add("a vendor's chain that leaves the search path", "ga.service", etc+"/ga.service", also, loc+"/gb.service", "-> gt@one.service", loc+"/gt@one.service", "-> /opt/g/x.service", "/opt/g/x.service", wants)
	drop := func(name string, pairs ...string) { add("drop-ins: "+name, "ga.service", pairs...) }
	drop("of all folders", etc+"/ga.service", "[Unit]\n", etc+"/ga.service.d/x.conf", "[Install]\nWantedBy=x.target\n", usr+"/ga.service.d/x.conf", "[Install]\nWantedBy=ux.target\n", usr+"/ga.service.d/y.conf", "[Install]\nWantedBy=uy.target\n", run+"/ga.service.d/z.conf", "[Install]\nWantedBy=rz.target\n")
	drop("not of the type or a prefix", etc+"/ga-b.service", "[Unit]\n", etc+"/ga.service", wants, etc+"/ga-.service.d/x.conf", "[Install]\nWantedBy=prefix.target\n", etc+"/service.d/x.conf", "[Install]\nWantedBy=type.target\n")
	drop("broken", etc+"/ga.service", wants, etc+"/ga.service.d/x.conf", "[Foo\n")
	drop("empty hides", etc+"/ga.service", wants, etc+"/ga.service.d/x.conf", "", usr+"/ga.service.d/x.conf", "[Install]\nWantedBy=x.target\n")
	drop("null hides", etc+"/ga.service", wants, etc+"/ga.service.d/x.conf", "-> /dev/null", usr+"/ga.service.d/x.conf", "[Install]\nWantedBy=x.target\n")
	drop("a link", etc+"/ga.service", wants, etc+"/ga.service.d/x.conf", "-> /opt/g/x", "/opt/g/x", "[Install]\nWantedBy=x.target\n")
	drop("a link to nothing", etc+"/ga.service", wants, etc+"/ga.service.d/x.conf", "-> /opt/g/x")
	drop("a folder", etc+"/ga.service", wants, etc+"/ga.service.d/x.conf", "dir")
	drop("odd names", etc+"/ga.service", wants, etc+"/ga.service.d/x", "[Install]\nWantedBy=x.target\n", etc+"/ga.service.d/.x.conf", "[Install]\nWantedBy=x.target\n", etc+"/ga.service.d/x.conf~", "[Install]\nWantedBy=x.target\n")
	drop("without a unit", etc+"/ga.service.d/x.conf", wants)
	drop("a folder that is a link", etc+"/ga.service", "[Unit]\n", etc+"/ga.service.d", "-> /opt/g/d", "/opt/g/d/x.conf", wants)
	return all
}
