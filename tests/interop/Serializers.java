import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Scanner;
import java.util.UUID;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.common.utils.Bytes;

/**
 * What Kafka's serializers write ("name hex" for each case), and what its deserializers read of the
 * lines that come in ("name hex" each), as "name text".
 */
public class Serializers {
    static final UUID ID = UUID.fromString("7ba7b810-9dad-11d1-80b4-00c04fd430c8");

    static void write(String name, byte[] data) {
        System.out.println(name + " " + (data == null ? "null" : "x" + HexFormat.of().formatHex(data)));
    }

    static StringSerializer text(String encoding) {
        StringSerializer made = new StringSerializer();
        made.configure(Map.of("value.serializer.encoding", encoding), false);
        return made;
    }

    static StringDeserializer reader(String encoding) {
        StringDeserializer made = new StringDeserializer();
        made.configure(Map.of("deserializer.encoding", encoding), true);
        return made;
    }

    public static void main(String[] arguments) {
        String mixed = "a\u00e9\u20ac\ud83d\ude00";
        write("string", new StringSerializer().serialize("t", mixed));
        write("string-empty", new StringSerializer().serialize("t", ""));
        write("string-null", new StringSerializer().serialize("t", null));
        write("string-lone", new StringSerializer().serialize("t", "x\ud800y"));
        for (String encoding : new String[] {"ISO-8859-1", "US-ASCII", "UTF-16", "UTF-16LE", "UTF-32"}) {
            write("string-" + encoding, text(encoding).serialize("t", mixed));
            write("string-" + encoding + "-empty", text(encoding).serialize("t", ""));
        }
        write("uuid", new UUIDSerializer().serialize("t", ID));
        for (short number : new short[] {0, 1, -1, Short.MIN_VALUE, Short.MAX_VALUE}) {
            write("short:" + number, new ShortSerializer().serialize("t", number));
        }
        for (int number : new int[] {0, 1, -1, Integer.MIN_VALUE, Integer.MAX_VALUE}) {
            write("integer:" + number, new IntegerSerializer().serialize("t", number));
        }
        for (long number : new long[] {0, 1, -1, Long.MIN_VALUE, Long.MAX_VALUE}) {
            write("long:" + number, new LongSerializer().serialize("t", number));
        }
        for (float number : new float[] {0, -0.0f, 1.5f, -3250.5f}) {
            write("float:" + number, new FloatSerializer().serialize("t", number));
        }
        for (double number : new double[] {0, -0.0, 0.1, -1e300, Double.MIN_VALUE}) {
            write("double:" + number, new DoubleSerializer().serialize("t", number));
        }
        write("boolean:true", new BooleanSerializer().serialize("t", true));
        write("boolean:false", new BooleanSerializer().serialize("t", false));
        write("bytearray", new ByteArraySerializer().serialize("t", new byte[] {1, 2, -1}));
        write("bytes", new BytesSerializer().serialize("t", Bytes.wrap(new byte[] {1, 2, -1})));
        write("bytebuffer", new ByteBufferSerializer().serialize("t", ByteBuffer.wrap(new byte[] {1, 2, -1})));
        write("void", new VoidSerializer().serialize("t", null));
        write("list-integer", new ListSerializer<>(new IntegerSerializer())
            .serialize("t", Arrays.asList(1, null, -2, null)));
        write("list-string", new ListSerializer<>(new StringSerializer())
            .serialize("t", Arrays.asList("a", null, "", "bcd")));
        write("list-uuid", new ListSerializer<>(new UUIDSerializer()).serialize("t", Arrays.asList(ID, null)));
        write("list-empty", new ListSerializer<>(new LongSerializer()).serialize("t", new ArrayList<>()));

        Map<String, Deserializer<?>> readers = new LinkedHashMap<>();
        readers.put("string", new StringDeserializer());
        for (String encoding : new String[] {"ISO-8859-1", "US-ASCII", "UTF-16", "UTF-16LE", "UTF-32"}) {
            readers.put("string-" + encoding, reader(encoding));
        }
        readers.put("uuid", new UUIDDeserializer());
        readers.put("short", new ShortDeserializer());
        readers.put("integer", new IntegerDeserializer());
        readers.put("long", new LongDeserializer());
        readers.put("float", new FloatDeserializer());
        readers.put("double", new DoubleDeserializer());
        readers.put("boolean", new BooleanDeserializer());
        readers.put("list-integer", new ListDeserializer<>(ArrayList.class, new IntegerDeserializer()));
        readers.put("list-string", new ListDeserializer<>(ArrayList.class, new StringDeserializer()));
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] line = lines.nextLine().split(" ");
            byte[] data = HexFormat.of().parseHex(line[1].substring(1));
            String read;
            try {
                read = String.valueOf(readers.get(line[0]).deserialize("t", data));
            } catch (RuntimeException failure) {
                read = "refused: " + failure.getMessage();
            }
            StringBuilder points = new StringBuilder();
            read.codePoints().forEach(point -> points.append(Integer.toHexString(point)).append(','));
            System.out.println("read " + line[0] + " " + line[1] + " " + points);
        }
    }
}
