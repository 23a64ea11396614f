import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Kafka's own client, which executes commands: words separated by tabs, one command on each line. */
public class Client {
    private final String servers;
    private final Admin admin;

    private Client(String servers) {
        this.servers = servers;
        this.admin = Admin.create(properties());
    }

    public static void main(String[] arguments) throws Exception {
        Client client = new Client(arguments[0]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.out.println("ready");
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            try {
                for (String answer : client.execute(line.split("\t", -1))) {
                    System.out.println(answer);
                }
                System.out.println("=");
            } catch (Exception error) {
                System.out.println("!" + error);
            }
        }
        // Producers may still wait for a broker that is gone.
        Runtime.getRuntime().halt(0);
    }

    private Properties properties() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", servers);
        return properties;
    }

    private List<String> execute(String[] words) throws Exception {
        switch (words[0]) {
            case "create":
                NewTopic topic = new NewTopic(words[1], Optional.of(Integer.valueOf(words[2])), Optional.empty());
                if (words.length > 3) {
                    String[] setting = words[3].split("=");
                    topic.configs(Map.of(setting[0], setting[1]));
                }
                admin.createTopics(List.of(topic)).all().get();
                // The broker learns of it a moment later.
                while (!isKnown(words[1])) {
                    Thread.sleep(5);
                }
                return List.of();
            case "delete":
                admin.deleteTopics(List.of(words[1])).all().get();
                return List.of();
            case "trim":
                TopicPartition partition = new TopicPartition(words[1], Integer.parseInt(words[2]));
                admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(Long.parseLong(words[3])))).all().get();
                return List.of();
            case "send":
                return send(words[1], words[2], null, words);
            case "commit":
            case "abort":
                return send(words[1], words[2], words[0], words);
            case "read":
                return read(words[1]);
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private boolean isKnown(String topic) throws Exception {
        try {
            return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().stream()
                    .allMatch(partition -> partition.leader() != null);
        } catch (ExecutionException error) {
            return false;
        }
    }

    /** Sends messages, each a key and a value: a word of one or two parts, separated by `|`. */
    private List<String> send(String topic, String compression, String transaction, String[] words) throws Exception {
        Properties properties = properties();
        properties.put("compression.type", compression);
        properties.put("linger.ms", "5");
        if (transaction != null) {
            properties.put("transactional.id", "client-" + System.nanoTime());
        }
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
            if (transaction != null) {
                producer.initTransactions();
                producer.beginTransaction();
            }
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int index = 3; index < words.length; index++) {
                String[] message = words[index].split("\\|", -1);
                String value = message.length > 1 ? message[1] : null;
                sent.add(producer.send(new ProducerRecord<>(topic, message[0].isEmpty() ? null : message[0], value)));
            }
            if (transaction != null) {
                producer.flush();
            }
            List<String> places = new ArrayList<>();
            for (Future<RecordMetadata> one : sent) {
                RecordMetadata stored = one.get();
                places.add(stored.partition() + "\t" + stored.offset());
            }
            if ("commit".equals(transaction)) {
                producer.commitTransaction();
            } else if ("abort".equals(transaction)) {
                producer.abortTransaction();
            }
            return places;
        }
    }

    /** Reads all committed messages of a topic. */
    private List<String> read(String topic) {
        Properties properties = properties();
        properties.put("isolation.level", "read_committed");
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer())) {
            List<TopicPartition> partitions = new ArrayList<>();
            consumer.partitionsFor(topic).forEach(one -> partitions.add(new TopicPartition(topic, one.partition())));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            List<String> messages = new ArrayList<>();
            while (partitions.stream().anyMatch(one -> consumer.position(one) < ends.get(one))) {
                for (ConsumerRecord<String, String> message : consumer.poll(Duration.ofMillis(200))) {
                    StringBuilder headers = new StringBuilder();
                    message.headers().forEach(header -> headers.append(header.key()).append('=')
                            .append(new String(header.value(), StandardCharsets.UTF_8)).append(';'));
                    messages.add(message.partition() + "\t" + message.key() + "\t" + message.value() + "\t" + headers);
                }
            }
            return messages;
        }
    }
}
