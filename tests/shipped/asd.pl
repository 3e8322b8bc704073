#!/usr/bin/perl
# Stands in for a server of the Community Edition of Aerospike on the node of the tests: reads the file where the server
# reads it, refuses it as strictly, listens on its ports, and answers a connection to the service port with its settings.
# It keeps no records, and uses no modules, because the image has none.

my $path = '/etc/aerospike/aerospike.conf';
my ($number, $size) = ('\d+', '\d+[MG]');
# Sections and settings with the form of their values. The settings of the Enterprise Edition are refused.
my %known = (
  'service' => '{}', 'service.cluster-name' => '\S+',
  'logging' => '{}', 'logging.console' => '{}',
  'logging.console.context' => 'any (critical|warning|info|debug|detail)',
  'network' => '{}',
  'network.service' => '{}', 'network.service.address' => 'any', 'network.service.port' => $number,
  'network.fabric' => '{}', 'network.fabric.address' => 'any', 'network.fabric.port' => $number,
  'network.fabric.keepalive-enabled' => 'true|false', 'network.fabric.keepalive-intvl' => $number,
  'network.heartbeat' => '{}', 'network.heartbeat.mode' => 'mesh', 'network.heartbeat.address' => 'any',
  'network.heartbeat.port' => $number, 'network.heartbeat.interval' => $number, 'network.heartbeat.timeout' => $number,
  'network.heartbeat.mesh-seed-address-port' => '\S+ \d+',
  'namespace' => '\S+ {}', 'namespace.replication-factor' => $number, 'namespace.strong-consistency' => 'enterprise',
  'namespace.storage-engine' => '(memory|device) {}',
  'namespace.storage-engine.data-size' => $size, 'namespace.storage-engine.compression' => 'enterprise',
  'namespace.storage-engine.file' => '\S+', 'namespace.storage-engine.filesize' => $size,
);

my (@within, %set);
open(my $file, '<', $path) or die "cannot read $path: $!\n";
while (my $line = <$file>) {
  $line =~ s/#.*//;
  my @words = split ' ', $line;
  next unless @words;
  if ($words[0] eq '}') {
    @within or die "line $.: a section ends that never began\n";
    pop @within;
    next;
  }
  my $name = shift @words;
  my $key = join '.', @within, $name;
  my $form = $known{$key};
  defined $form or die "line $.: unknown config parameter name '$name'\n";
  $form ne 'enterprise' or die "line $.: '$name' is enterprise-only\n";
  push @within, $name if @words && $words[-1] eq '{';
  my $value = join ' ', @words;
  $form =~ s/\{\}/\\{/;
  $value =~ /^($form)$/ or die "line $.: '$name' has the wrong form: $value\n";
  push @{$set{$key}}, $value;
}
@within and die "a section does not end\n";
my ($megabytes) = ($set{'namespace.storage-engine.data-size'} || ['512M'])->[0] =~ /^(\d+)M$/;
$megabytes >= 512 or die "data-size is too small\n";

my $settings = join '', map { my $key = $_; map "$key $_\n", @{$set{$key}} } sort keys %set;
$settings .= "$_=$ENV{$_}\n" for 'MEM_GB', 'REPL_FACTOR';

my @doors;
for my $door ('service', 'fabric', 'heartbeat') {
  my $port = $set{"network.$door.port"}[0] or die "$door has no port\n";
  # A stream (1) of the internet (2), with the option to reuse the address (2) of the level of sockets (1).
  socket(my $socket, 2, 1, 0) or die "socket: $!\n";
  setsockopt($socket, 1, 2, pack('l', 1));
  bind($socket, pack('S n x12', 2, $port)) or die "port $port: $!\n";
  listen($socket, 16) or die "port $port: $!\n";
  push @doors, $socket;
}
$SIG{TERM} = sub { exit 0 };
$| = 1;
print $settings;
while (1) {
  my $ready = '';
  vec($ready, fileno($_), 1) = 1 for @doors;
  select($ready, undef, undef, undef) > 0 or next;
  for my $door (@doors) {
    next unless vec($ready, fileno($door), 1) && accept(my $caller, $door);
    syswrite($caller, $settings) if $door == $doors[0];
    close $caller;
  }
}
