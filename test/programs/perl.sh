# perl: files, hashes, processes, signals, sockets, sorting.
exec perl -e '
use strict; use warnings; use IO::Socket::INET; use POSIX qw(:sys_wait_h); use Socket; $| = 1;
my %h = map { $_ => $_ ** 2 } 1 .. 10; print join(",", map { "$_=$h{$_}" } sort { $a <=> $b } keys %h), "\n";
open my $f, ">", "t" or die; print $f "line $_\n" for 1 .. 1000; close $f; open $f, "<", "t"; my @l = <$f>; print scalar(@l), " ", $l[-1]; seek $f, 5, 0; read $f, my $buf, 3; print "$buf"; print -s "t", "\n"; rename "t", "u"; print -e "t" ? "there\n" : "gone\n";
my $pid = fork; if (!$pid) { exit 7 } waitpid $pid, 0; print "child ", $? >> 8, "\n";
print "backtick ", `echo from the shell`; print "system ", system("sh", "-c", "exit 3") >> 8, "\n";
$SIG{USR1} = sub { print "usr1\n" }; kill USR1 => $$; eval { local $SIG{ALRM} = sub { die "alarm\n" }; alarm 1; select undef, undef, undef, 5; }; print "caught $@";
pipe my $r, my $w; if (!($pid = fork)) { close $r; print $w "through the pipe\n"; exit } close $w; print <$r>; waitpid $pid, 0;
my $s = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1") or die "listen: $!"; if (!($pid = fork)) { my $c = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $s->sockport) or die; print $c "hello\n"; print "client got ", scalar <$c>; exit } my $c = $s->accept; my $l = <$c>; print $c uc $l; close $c; waitpid $pid, 0;
socketpair my $x, my $y, AF_UNIX, SOCK_STREAM, PF_UNSPEC; syswrite $x, "pair"; sysread $y, $buf, 10; print "$buf\n";
my @a = map { ($_ * 7919) % 10007 } 1 .. 20000; @a = sort { $a <=> $b } @a; print "$a[0] $a[-1]\n"; my $t = "the quick brown fox"; $t =~ s/(\w+)/\u$1/g; print "$t\n"; print sprintf("%.5f %e %x\n", 3.14159265, 12345.678, 255);
opendir my $d, "."; print join(" ", sort grep { !/^\./ } readdir $d), "\n"; print ((stat "u")[7], "\n"); open my $p, "-|", "seq 5" or die; print "sum ", eval { my $n = 0; $n += $_ while <$p>; $n }, "\n"; local $ENV{V} = "env"; print `echo \$V`;
die "last words\n"'
# exit: 255
